"""The reader of each kind of file. A library is imported only where it is needed."""

# ruff: noqa: PLC0415

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from tools_app.core.files import kinds
from tools_app.core.files.encodings import shown_text
from tools_app.documents.readers.text import NoText, cleaned

Reader: TypeAlias = Callable[[bytes], str | tuple[bytes, str]]
"""Gives the text of a document, or a picture with its media type. Errors: `NoText`; whatever a library raises."""


def reader_of(media_type: str) -> Reader:
    """The reader of a kind."""
    if media_type in kinds.PICTURES:
        from tools_app.documents.readers.pictures import read_picture

        return partial(read_picture, media_type=media_type)
    return _reader(media_type)


def _reader(media_type: str) -> Callable[[bytes], str]:
    match media_type:
        case kinds.PDF:
            from tools_app.documents.readers.pdf import read_pdf as reader
        case kinds.RTF:
            from tools_app.documents.readers.rich_text import read_rich_text as reader
        case kinds.XLSX | kinds.XLS | kinds.ODS:
            from tools_app.documents.readers.sheets import read_sheets as reader
        case kinds.EML:
            from tools_app.documents.readers.mail import read_mail as reader
        case kinds.NOTEBOOK:
            from tools_app.documents.readers.notebook import read_notebook as reader
        case kinds.HTML:
            reader = _page
        case _:
            return _reader_of_archive(media_type)
    return reader


def _reader_of_archive(media_type: str) -> Callable[[bytes], str]:
    match media_type:
        case kinds.DOCX:
            from tools_app.documents.readers.word import read_word as reader
        case kinds.PPTX:
            from tools_app.documents.readers.slides import read_slides as reader
        case kinds.ODT | kinds.ODP:
            from tools_app.documents.readers.open_document import read_open_document as reader
        case kinds.EPUB:
            from tools_app.documents.readers.book import read_book as reader
        case _:
            from tools_app.documents.readers.archive import read_archive as reader
    return reader


def _page(data: bytes) -> str:
    from tools_app.core.web_pages import to_markdown

    text = cleaned(to_markdown(shown_text(data)[0]))
    if not text:
        raise NoText("This page has no text. It may be one that a browser fills: save it from there, or as PDF.")
    return text
