"""E-books (EPUB): the chapters in their order, below the title and the authors. Pictures are not shown."""

import posixpath
import zipfile
from io import BytesIO
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from tools_app.core.files.encodings import shown_text
from tools_app.core.web_pages import to_markdown
from tools_app.documents.readers.archive import check_archive
from tools_app.documents.readers.parts import parse
from tools_app.documents.readers.text import NoText, TextWriter, cleaned

_CONTAINER: Final = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_OPF: Final = "{http://www.idpf.org/2007/opf}"
_DC: Final = "{http://purl.org/dc/elements/1.1/}"
_LOCKED: Final = (
    "This e-book is protected and can be read by its shop's program alone. Attach the pages that matter as text."
)
_ENCRYPTION: Final = "META-INF/encryption.xml"


def read_book(data: bytes) -> str:
    """The book as Markdown. Errors: `NoText`; `KeyError` and the like for a damaged one."""
    check_archive(data)
    writer = TextWriter()
    has_text = False
    with zipfile.ZipFile(BytesIO(data)) as archive:
        package = next(parse(archive, "META-INF/container.xml").iter(f"{_CONTAINER}rootfile")).get("full-path", "")
        book = parse(archive, package)
        writer.add(_title(book))
        names = set(archive.namelist())
        locked = archive.read(_ENCRYPTION).decode("utf-8", "replace") if _ENCRYPTION in names else ""
        for path in _chapters(book, posixpath.dirname(package)):
            if path not in names:
                continue
            if f'"{path}"' in unquote(locked):
                raise NoText(_LOCKED)
            text = cleaned(to_markdown(shown_text(archive.read(path))[0]))
            has_text = has_text or bool(text)
            writer.add(text)
            if writer.is_full:
                break
    if not has_text:
        raise NoText("This e-book has no text. Attach its pages as pictures.")
    return writer.text()


def _title(book: Element) -> str:
    title = " ".join(book.findtext(f".//{_DC}title", "").split())
    authors = ", ".join(
        filter(None, (" ".join("".join(each.itertext()).split()) for each in book.iter(f"{_DC}creator")))
    )
    return cleaned("\n".join(filter(None, [f"Title: {title}" if title else "", f"By: {authors}" if authors else ""])))


def _chapters(book: Element, folder: str) -> list[str]:
    """Paths of the chapters in the order of reading."""
    items = {each.get("id"): each.get("href", "") for each in book.iter(f"{_OPF}item")}
    wanted = (items.get(each.get("idref"), "") for each in book.iter(f"{_OPF}itemref"))
    return [posixpath.normpath(posixpath.join(folder, unquote(each))) for each in wanted if each]
