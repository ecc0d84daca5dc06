"""PDF documents: the text of their pages."""

from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import FileNotDecryptedError, PyPdfError

from tools_app.documents.readers.text import NoText, TextWriter, cleaned

MAX_PAGES = 3_000
SCANNED = (
    "The pages of this PDF are pictures without text, as a scanner makes them. Choose a model that reads PDF "
    "documents, attach the pages as pictures, or have their text recognised first."
)
PROTECTED = "This PDF is protected by a password. Save it without one, then attach it again."


def read_pdf(data: bytes) -> str:
    """The pages with text, each under its number; a line names those without. Errors: `NoText`."""
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise NoText(PROTECTED)
        return _pages(reader)
    except FileNotDecryptedError as error:
        raise NoText(PROTECTED) from error
    except PyPdfError as error:
        raise NoText("This PDF is damaged and cannot be read. Save it again with the program it comes from.") from error


def _pages(reader: PdfReader) -> str:
    writer, empty = TextWriter(), list[int]()
    count = len(reader.pages)
    for number in range(1, min(count, MAX_PAGES) + 1):
        text = cleaned(reader.pages[number - 1].extract_text())
        if text:
            writer.add(f"## Page {number}\n\n{text}")
        else:
            empty.append(number)
        if writer.is_full:
            break
    if not writer.text():
        raise NoText(SCANNED)
    if empty:
        numbers = ", ".join(map(str, empty[:50])) + (", …" if len(empty) > 50 else "")
        writer.add(f"(Pages without text, which may have pictures: {numbers}.)")
    return writer.text()
