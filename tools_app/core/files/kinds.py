"""Kinds of files that people bring: found in the bytes, with a name for people and what to do with each. Pure.

`media_types.sniff` knows what is sent and stored as it is. This module looks on where that ends: documents, photos of
phones, archives, and what cannot be read at all. A name's extension only chooses between kinds of text.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.phrases import Phrase
from tools_app.core.files.encodings import detected, has_controls, shown_text
from tools_app.core.files.media_types import sniff
from tools_app.core.files.picture_heads import is_ready

_OOXML: Final = "application/vnd.openxmlformats-officedocument."
DOCX: Final = f"{_OOXML}wordprocessingml.document"
XLSX: Final = f"{_OOXML}spreadsheetml.sheet"
PPTX: Final = f"{_OOXML}presentationml.presentation"
XLS: Final = "application/vnd.ms-excel"
_ODF: Final = "application/vnd.oasis.opendocument."
ODS: Final = f"{_ODF}spreadsheet"
ODT: Final = f"{_ODF}text"
ODP: Final = f"{_ODF}presentation"
EPUB: Final = "application/epub+zip"
RTF: Final = "application/rtf"
EML: Final = "message/rfc822"
NOTEBOOK: Final = "application/x-ipynb+json"
HTML: Final = "text/html"
PDF: Final = "application/pdf"
ZIP: Final = "application/zip"
HEIC: Final = "image/heic"
AVIF: Final = "image/avif"
TIFF: Final = "image/tiff"
BMP: Final = "image/bmp"
UNKNOWN: Final = "application/octet-stream"

NAMES: Final = {
    DOCX: "Word document",
    XLSX: "Excel workbook",
    XLS: "Excel workbook of an older format",
    ODS: "OpenDocument spreadsheet",
    ODT: "OpenDocument text",
    ODP: "OpenDocument presentation",
    EPUB: "e-book",
    RTF: "Rich Text document",
    PPTX: "PowerPoint presentation",
    EML: "e-mail",
    NOTEBOOK: "Jupyter notebook",
    HTML: "web page",
    PDF: "PDF document",
    ZIP: "zip archive",
    HEIC: "HEIC photo",
    AVIF: "AVIF picture",
    TIFF: "TIFF picture",
    BMP: "BMP picture",
}
"""The names of kinds in sentences."""

DOCUMENTS: Final = frozenset({DOCX, XLSX, XLS, ODS, ODT, ODP, PPTX, EPUB, RTF, EML, NOTEBOOK, HTML, PDF, ZIP})
"""Kinds that become text."""

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif", HEIC, AVIF, TIFF, BMP})
"""Kinds that become a picture which every provider takes."""

MAX_SIDE: Final = 2048
"""Pixels of a side of a picture that is sent: providers make larger ones smaller themselves, or refuse them."""

MAX_PICTURE_BYTES: Final = 3_670_016
"""3.5 MiB: the largest picture that is sent. As text, which it travels as, it has less than 5 MB."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A kind without text: a sentence that names a file of it, and what to do."""

    sentence: Phrase


_PROTECTED: Final = Phrase("{name} is protected by a password. Save it without one, then attach it again.", name="")
_OLD_WORD: Final = Phrase(
    "{name} is a Word document of an older format. Save it as .docx or PDF, then attach it again.", name=""
)
_OLD_SLIDES: Final = Phrase(
    "{name} is a presentation of an older format. Save it as .pptx or PDF, then attach it again.", name=""
)
_OUTLOOK: Final = Phrase("{name} is a message of Outlook. Save it as .eml or PDF, then attach it again.", name="")
_OPEN_DOCUMENT: Final = Phrase(
    "{name} is a drawing, formula or database of LibreOffice. Save it as PDF or CSV, then attach it again.", name=""
)
_APPLE: Final = Phrase(
    "{name} is a document of Pages, Numbers or Keynote. Export it as PDF or for Office, and attach that.", name=""
)
_VIDEO: Final = Phrase("{name} is a video. Attach pictures of it, or its text.", name="")
_AUDIO: Final = Phrase("{name} is a sound recording. Attach its text.", name="")
_ARCHIVE: Final = Phrase(
    "{name} is an archive that cannot be opened here. Unpack it and attach its files, or a zip of them.", name=""
)
_DATABASE: Final = Phrase(
    "{name} is a file of data for programs. Put it into the files of the conversation, or attach it as CSV or JSON.",
    name="",
)
_PROGRAM: Final = Phrase("{name} is a program. Programs cannot be read; attach its source, or what it prints.", name="")
_DAMAGED: Final = Phrase("{name} is damaged or not complete. Make or download it again, then attach it again.", name="")
_EMPTY_ARCHIVE: Final = Phrase("{name} is an archive without files. Attach the files themselves.", name="")
_ODD_PICTURE: Final = Phrase(
    "{name} is a picture of a kind that is not shown here. Save it as PNG or JPEG, then attach it again.", name=""
)
_ODD_TEXT: Final = Phrase(
    "{name} is a text in an encoding that cannot be recognised. Save it as UTF-8, then attach it again.", name=""
)
_FONT: Final = Phrase("{name} is a font. Fonts cannot be read.", name="")
_OTHER: Final = Phrase(
    "{name} is no text, picture or document of a known kind. Save it as PDF, text or CSV, or put it into the files of "
    "the conversation.",
    name="",
)

_MAGIC: Final[tuple[tuple[bytes, str | Unreadable], ...]] = (
    (b"II*\x00", TIFF),
    (b"MM\x00*", TIFF),
    (b"ID3", Unreadable(_AUDIO)),
    (b"OggS", Unreadable(_AUDIO)),
    (b"fLaC", Unreadable(_AUDIO)),
    *((b"\xff" + bytes([each]), Unreadable(_AUDIO)) for each in (0xF1, 0xF2, 0xF3, 0xF9, 0xFA, 0xFB)),
    (b"#!AMR", Unreadable(_AUDIO)),
    (b"FLV\x01", Unreadable(_VIDEO)),
    (b"\x00\x00\x01\xba", Unreadable(_VIDEO)),
    (b"\x00\x00\x01\xb3", Unreadable(_VIDEO)),
    (b"0&\xb2u\x8ef\xcf\x11", Unreadable(_VIDEO)),
    (b"8BPS", Unreadable(_ODD_PICTURE)),
    (b"\x00\x00\x00\x0cjP  ", Unreadable(_ODD_PICTURE)),
    (b"\xff\x4f\xff\x51", Unreadable(_ODD_PICTURE)),
    (b"\x00\x00\x01\x00", Unreadable(_ODD_PICTURE)),
    (b"\xff\x0a", Unreadable(_ODD_PICTURE)),
    (b"\x00\x00\x00\x0cJXL ", Unreadable(_ODD_PICTURE)),
    (b"\x00\x01\x00\x00Standard ", Unreadable(_DATABASE)),
    *((magic, Unreadable(_FONT)) for magic in (b"wOFF", b"wOF2", b"OTTO", b"\x00\x01\x00\x00\x00", b"ttcf")),
    (b"PK\x05\x06", Unreadable(_EMPTY_ARCHIVE)),
    (b"\x00asm", Unreadable(_PROGRAM)),
    (b"\x1aE\xdf\xa3", Unreadable(_VIDEO)),
    (b"\x1f\x8b", Unreadable(_ARCHIVE)),
    (b"7z\xbc\xaf\x27\x1c", Unreadable(_ARCHIVE)),
    (b"Rar!\x1a\x07", Unreadable(_ARCHIVE)),
    (b"BZh", Unreadable(_ARCHIVE)),
    (b"\xfd7zXZ\x00", Unreadable(_ARCHIVE)),
    (b"(\xb5/\xfd", Unreadable(_ARCHIVE)),
    (b"SQLite format 3\x00", Unreadable(_DATABASE)),
    (b"PAR1", Unreadable(_DATABASE)),
    (b"\x7fELF", Unreadable(_PROGRAM)),
    (b"MZ", Unreadable(_PROGRAM)),
    (b"\xca\xfe\xba\xbe", Unreadable(_PROGRAM)),
)
_BRANDS: Final[dict[bytes, str | Unreadable]] = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), HEIC),
    **dict.fromkeys((b"avif", b"avis"), AVIF),
    **dict.fromkeys((b"M4A ", b"M4B "), Unreadable(_AUDIO)),
}
_ZIP: Final = b"PK\x03\x04"
_ZIP_MEMBERS: Final = (
    (rb"word/document\d*\.xml", DOCX),
    (rb"xl/workbook\.xml", XLSX),
    (rb"xl/workbook\.bin", XLSX),
    (rb"ppt/presentation\.xml", PPTX),
    (rb"Index/Document\.iwa", Unreadable(_APPLE)),
    (rb"Index\.zip", Unreadable(_APPLE)),
    (rb"META-INF/container\.xml", EPUB),
)
_ZIP_MEDIA: Final = re.compile(rb"PK\x03\x04.{4}\x00\x00.{16}\x08\x00..mimetype([\x20-\x7e]{1,100}?)PK", re.DOTALL)
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS: Final = (
    ("EncryptedPackage", Unreadable(_PROTECTED)),
    ("WordDocument", Unreadable(_OLD_WORD)),
    ("PowerPoint Document", Unreadable(_OLD_SLIDES)),
    ("__substg1.0_", Unreadable(_OUTLOOK)),
    ("Workbook", XLS),
    ("Book", XLS),
)
_MAIL_FIELD: Final = re.compile(
    r"(?:from|to|subject|date|received|return-path|message-id|mime-version):", re.IGNORECASE
)
_HEADER_LINE: Final = re.compile(r"[!-9;-~]+:|[ \t]")
_PDF_BEHIND: Final = re.compile(rb"^%PDF-\d\.\d\s*$", re.MULTILINE)
_END_BYTES: Final = 66_000  # of a zip file: its end record, with the longest comment
_HTML: Final = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


def kind_of_file(data: bytes, name: str) -> str | Unreadable:
    """The media type of a file, or why there is nothing to read in it. Text in any encoding is a kind of text."""
    if data.startswith(b"{\\rtf"):
        return RTF
    media_type = sniff(data, name)
    encoding = detected(data)
    found = _binary_kind(data) if media_type == UNKNOWN or (encoding and encoding.is_assumed) else None
    if found is not None:
        return found
    if media_type != PDF and _PDF_BEHIND.search(data[:1024]) and b"%%EOF" in data[-2048:]:
        return PDF  # behind a few lines of something else, as some programs send it
    if media_type == UNKNOWN:
        return Unreadable(_OTHER if b"\0" in data or has_controls(data) else _ODD_TEXT)
    return _kind_of_text(data, name) or media_type


def refusal(kind: Unreadable, name: str) -> Phrase:
    """The sentence for people about a file that cannot be read: its kind, and what to do."""
    return kind.sentence.with_values(name=name)


def kind_name(media_type: str) -> str:
    """The name of a kind in a sentence; the media type where it has none."""
    return NAMES.get(media_type, media_type)


def has_view(data: bytes, media_type: str) -> bool:
    """Whether a file is read as something else: the text of a document, or a picture that providers take."""
    if media_type in PICTURES:
        return not is_ready(data, media_type, max_side=MAX_SIDE, max_bytes=MAX_PICTURE_BYTES)
    return media_type in DOCUMENTS


def _binary_kind(data: bytes) -> str | Unreadable | None:
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], Unreadable(_VIDEO))
    if data.startswith(_ZIP):
        return _zip_kind(data)
    if data.startswith(_OLE):
        found = (kind for stream, kind in _OLE_STREAMS if stream.encode("utf-16-le") in data)
        return next(found, Unreadable(_OTHER))
    if data[:4] == b"RIFF":
        return Unreadable(_AUDIO if data[8:12] == b"WAVE" else _VIDEO)
    if data[257:262] == b"ustar":
        return Unreadable(_ARCHIVE)
    if data[:2] == b"BM" and int.from_bytes(data[2:6], "little") == len(data):
        return BMP
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def _zip_kind(data: bytes) -> str | Unreadable:
    """The kind of a zip file, from the names in its directory: what it holds inside its members does not count."""
    end = data.rfind(b"PK\x05\x06", max(0, len(data) - _END_BYTES))
    if end < 0:
        return Unreadable(_DAMAGED)
    declared = _ZIP_MEDIA.match(data)
    media_type = declared[1].decode("ascii") if declared else ""
    if media_type == EPUB:
        return EPUB
    if media_type.startswith(_ODF):
        kind = media_type.removesuffix("-template").removesuffix("-master").removesuffix("-web")
        return kind if kind in DOCUMENTS else Unreadable(_OPEN_DOCUMENT)
    directory = data[int.from_bytes(data[end + 16 : end + 20], "little") : end]
    for member, kind in _ZIP_MEMBERS:
        if re.search(rb"PK\x01\x02.{42}" + member, directory, re.DOTALL):
            return kind
    return ZIP


def _kind_of_text(data: bytes, name: str) -> str | Unreadable | None:
    extension = name[name.rfind(".") :].lower() if "." in name else ""
    if extension in {".html", ".htm", ".xhtml", ".xls"} and _HTML.match(_begun(data, 4_000)):
        return HTML
    if extension in {".eml", ".mht", ".mhtml"} and _is_mail(_begun(data, 20_000)):
        return EML
    if extension == ".ipynb" and _is_notebook(data):
        return NOTEBOOK
    return None


def _begun(data: bytes, most: int) -> str:
    return shown_text(data[:most], is_head=len(data) > most)[0]


def _is_mail(text: str) -> bool:
    lines = text.splitlines()
    head = lines[: lines.index("")] if "" in lines else lines
    fields = [line for line in head if _MAIL_FIELD.match(line)]
    return bool(head) and len(fields) >= 2 and all(map(_HEADER_LINE.match, head))


def _is_notebook(data: bytes) -> bool:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("cells"), list) and "nbformat" in value
