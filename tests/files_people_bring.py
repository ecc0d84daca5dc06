"""The files of `tests/files`, and what is expected of each: `tests/files/README.md` describes them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent / "files"


@dataclass(frozen=True, slots=True)
class Brought:
    """A file: its name, its media type ("" where it is refused), and the sides of the picture it becomes."""

    name: str
    media_type: str
    sides: tuple[int, int] | None = None

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return (FOLDER / self.name).read_bytes()

    @property
    def expected(self) -> str:
        """The text that models and people get of it, or the sentence with which it is refused."""
        return (FOLDER / "expected" / f"{self.name}.txt").read_text("utf-8").removesuffix("\n")

    def __str__(self) -> str:
        return self.name


_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OPEN: Final = "application/vnd.oasis.opendocument."
DOCUMENTS: Final = (
    Brought("analysis.ipynb", "application/x-ipynb+json"),
    Brought("book.epub", "application/epub+zip"),
    Brought("budget.xlsx", f"{_OFFICE}spreadsheetml.sheet"),
    Brought("changes.docx", f"{_OFFICE}wordprocessingml.document"),
    Brought("contacts.csv", "text/csv"),
    Brought("customers.csv", "text/csv"),
    Brought("cyrillic.html", "text/html"),
    Brought("forwarded.eml", "message/rfc822"),
    Brought("garden.odt", f"{_OPEN}text"),
    Brought("garden.rtf", "application/rtf"),
    Brought("invoice.eml", "message/rfc822"),
    Brought("invoice.pdf", "application/pdf"),
    Brought("letter.rtf", "application/rtf"),
    Brought("locked.pdf", "application/pdf"),
    Brought("newsletter.eml", "message/rfc822"),
    Brought("notes.md", "text/markdown"),
    Brought("plants.ods", f"{_OPEN}spreadsheet"),
    Brought("project.zip", "application/zip"),
    Brought("recipe.html", "text/html"),
    Brought("report.docx", f"{_OFFICE}wordprocessingml.document"),
    Brought("saved.mht", "message/rfc822"),
    Brought("scan.pdf", "application/pdf"),
    Brought("stock.xls", "application/vnd.ms-excel"),
    Brought("talk.odp", f"{_OPEN}presentation"),
    Brought("talk.pptx", f"{_OFFICE}presentationml.presentation"),
)
PICTURES: Final = (
    Brought("fax.tiff", "image/tiff", (600, 400)),
    Brought("greys.png", "image/png", (2048, 27)),
    Brought("iphone.heic", "image/heic", (1600, 1200)),
    Brought("logo.png", "image/png", (128, 128)),
    Brought("phone.jpg", "image/jpeg", (1536, 2048)),
    Brought("printer.jpg", "image/jpeg", (60, 40)),
)
REFUSED: Final = (
    Brought("clip.mp4", ""),
    Brought("cut.xlsx", ""),
    Brought("locked.docx", ""),
)
ALL: Final = (*DOCUMENTS, *PICTURES, *REFUSED)
