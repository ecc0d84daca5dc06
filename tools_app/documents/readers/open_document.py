"""Texts and presentations of OpenDocument, LibreOffice's format: headings, lists, tables, links, notes and slides.

Pictures are named. Deleted text that a document keeps is left out, and so are comments, as in Word documents.
"""

import zipfile
from collections.abc import Iterable
from html import escape
from io import BytesIO
from typing import Final
from xml.etree.ElementTree import Element

from tools_app.core.web_pages import to_markdown
from tools_app.documents.readers.archive import check_archive
from tools_app.documents.readers.parts import parse
from tools_app.documents.readers.text import NoText, TextWriter, cleaned

_O: Final = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_OFFICE, _TEXT, _TABLE, _STYLE = (_O % name for name in ("office", "text", "table", "style"))
_DRAW, _SLIDE, _SVG = (_O % name for name in ("drawing", "presentation", "svg-compatible"))
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_LEFT_OUT: Final = (
    f"{_TEXT}tracked-changes",
    f"{_TEXT}ruby-text",
    f"{_OFFICE}annotation",
    f"{_OFFICE}forms",
    f"{_SLIDE}notes",
)
_SIGNS: Final = {f"{_TEXT}s": " ", f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "<br>"} | dict.fromkeys(_LEFT_OUT, "")
_TAGS: Final = {
    f"{_TEXT}p": "p",
    f"{_TEXT}list-item": "li",
    f"{_TEXT}list-header": "li",
    f"{_TABLE}table": "table",
    f"{_TABLE}table-row": "tr",
    f"{_TABLE}table-cell": "td",
    f"{_TABLE}covered-table-cell": "td",
}
_REPEATED: Final = (f"{_TABLE}number-columns-repeated", f"{_TABLE}number-rows-repeated")
MAX_REPEATED: Final = 50


def read_open_document(data: bytes) -> str:
    """The document as Markdown. Errors: `NoText`; `KeyError` and the like for a damaged one."""
    check_archive(data)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        if "encrypted-package" in names or b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise NoText("This document is protected by a password. Save it without one, then attach it again.")
        content = parse(archive, "content.xml")
        styles = [content, *([parse(archive, "styles.xml")] if "styles.xml" in names else [])]
    body = next(content.iter(f"{_OFFICE}body"))
    document = _Document(styles)
    text = _slides(body, document) if body.find(f"{_OFFICE}presentation") is not None else document.text(body)
    if not text:
        raise NoText("This document has no text. Save it as PDF, or attach pictures of its pages.")
    return text


def _slides(body: Element, document: "_Document") -> str:
    writer = TextWriter()
    has_text = False
    for number, page in enumerate(body.iter(f"{_DRAW}page"), 1):
        title = next(filter(None, (document.text(each) for each in page if _class(each) == "title")), "")
        shown = document.text(*(each for each in page if _class(each) != "title"))
        said = document.text(*(each for each in page.iterfind(f"{_SLIDE}notes/*") if _class(each) == "notes"))
        has_text = has_text or bool(title or shown or said)
        hidden = " (hidden)" if page.get(f"{_DRAW}style-name") in document.hidden else ""
        writer.add(f"## Slide {number}{hidden}{': ' if title else ''}{' '.join(title.split())}")
        writer.add(shown)
        writer.add(f"Notes: {said}" if said else "")
        if writer.is_full:
            break
    return writer.text() if has_text else ""


def _class(shape: Element) -> str:
    return shape.get(f"{_SLIDE}class", "")


class _Document:
    """Elements of one document as HTML, which becomes Markdown. `hidden`: styles of slides that are not shown."""

    def __init__(self, parts: Iterable[Element]) -> None:
        self.hidden: set[str | None] = set()
        self._titles = {"Title": 1, "Subtitle": 2}
        self._numbered: set[tuple[str, int]] = set()
        self._counts: dict[tuple[str, int], int] = {}
        self._notes: list[str] = []
        for part in parts:
            for style in part.iter(f"{_TEXT}list-style"):
                levels = style.iterfind(f"{_TEXT}list-level-style-number")
                self._numbered |= {(_name(style), int(each.get(f"{_TEXT}level", "1"))) for each in levels}
            for style in part.iter(f"{_STYLE}style"):
                facts = style.find(f"{_STYLE}drawing-page-properties")
                if facts is not None and facts.get(f"{_SLIDE}visibility") == "hidden":
                    self.hidden.add(_name(style))
                if rank := self._titles.get(style.get(f"{_STYLE}parent-style-name", "")):
                    self._titles.setdefault(_name(style), rank)

    def text(self, *elements: Element) -> str:
        """Their text as Markdown, and the notes in it."""
        page = "".join(self._html(each, "", 0) for each in elements) + "".join(self._notes)
        self._notes.clear()
        page = page.replace("</ul><ul>", "")  # a list for each item is one list, and one in an item of its own
        page = page.replace("</li><li><ul>", "<ul>").replace("</li><li><ol", "<ol")  # belongs to the item before
        return cleaned(to_markdown(page))

    def _html(self, element: Element, style: str, level: int) -> str:
        """An element as HTML. `style`, `level`: of the list around it."""
        tag = element.tag
        if tag in _SIGNS:
            return _SIGNS[tag]
        if tag == f"{_TEXT}list":
            return self._list(element, element.get(f"{_TEXT}style-name") or style, level + 1)
        if tag == f"{_TEXT}note":
            return self._note(element)
        if tag == f"{_DRAW}frame" and (picture := _picture(element)):
            return picture
        inner = self._inner(element, style, level)
        if rank := self._rank(element):
            return f"<h{rank}>{inner}</h{rank}>"
        if tag == f"{_TEXT}a":
            return f'<a href="{escape(element.get(_LINK, ""))}">{inner}</a>'
        times = max(int(element.get(each, "1")) for each in _REPEATED)
        name = _TAGS.get(tag)
        return f"<{name}>{inner}</{name}>" * min(times, MAX_REPEATED) if name else inner

    def _inner(self, element: Element, style: str, level: int) -> str:
        name = _TAGS.get(element.tag)
        has_words = name in {None, "p"}  # what else stands between tags is layout
        inner = escape(element.text or "") if has_words else ""
        for each in element:
            inner += self._html(each, style, level) + (escape(each.tail or "") if has_words else "")
        if name == "li":  # a paragraph in an item would put empty lines between the items
            return inner.removeprefix("<p>").replace("</p>", "", 1)
        return inner

    def _rank(self, element: Element) -> int:
        """The rank of a heading or a title; 0 for other elements."""
        if element.tag == f"{_TEXT}h":
            return min(max(int(element.get(f"{_TEXT}outline-level", "1")), 1), 6)
        return self._titles.get(element.get(f"{_TEXT}style-name", ""), 0) if element.tag == f"{_TEXT}p" else 0

    def _list(self, element: Element, style: str, level: int) -> str:
        items = "".join(self._html(each, style, level) for each in element)
        if (style, level) not in self._numbered:
            return f"<ul>{items}</ul>"
        goes_on = element.get(f"{_TEXT}continue-numbering") == "true" or element.get(f"{_TEXT}continue-list")
        before = self._counts.get((style, level), 0) if goes_on else 0
        self._counts[style, level] = before + len(element)
        return f'<ol start="{before + 1}">{items}</ol>'

    def _note(self, element: Element) -> str:
        sign = escape("".join(words for each in element.iterfind(f"{_TEXT}note-citation") for words in each.itertext()))
        body = "".join(self._html(each, "", 0) for each in element.iterfind(f"{_TEXT}note-body/*"))
        self._notes.append(body.replace("<p>", f"<p>[{sign}] ", 1))
        return f"[{sign}]"


def _name(style: Element) -> str:
    return style.get(f"{_STYLE}name", "")


def _picture(frame: Element) -> str:
    """The name of the picture in a frame; empty for a frame with text."""
    if frame.find(f"{_DRAW}text-box") is not None or frame.find(f"{_TABLE}table") is not None:
        return ""
    said = (frame.findtext(f"{_SVG}{name}", "").strip() for name in ("desc", "title"))
    name = next(filter(None, said), frame.get(f"{_DRAW}name", ""))
    return f"[Picture: {escape(name)}]" if name else "[Picture]"
