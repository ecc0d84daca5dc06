"""OpenDocument texts and presentations, and e-books, in the forms that their programs write.

Words of the formats: OpenDocument 1.3, part 3 (OASIS), and EPUB 3.3 (W3C).
"""

import io
import zipfile

import pytest

from tools_app.core.files import kinds
from tools_app.core.files.kinds import Unreadable, kind_of_file, refusal
from tools_app.documents.readers.book import read_book
from tools_app.documents.readers.open_document import read_open_document
from tools_app.documents.readers.text import NoText

NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in [
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("style", "style"),
        ("draw", "drawing"),
        ("presentation", "presentation"),
    ]
)
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


def archive(members: dict[str, str | bytes], media_type: str = "") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as zipped:
        if media_type:
            zipped.writestr("mimetype", media_type, zipfile.ZIP_STORED)
        for name, content in members.items():
            zipped.writestr(name, content)
    return made.getvalue()


def document(body: str, styles: str = "", *, manifest: str = "<m/>", kind: str = "text") -> bytes:
    content = (
        f"<office:document-content {NAMES} {XLINK}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    return archive(
        {"content.xml": content, "META-INF/manifest.xml": manifest}, f"application/vnd.oasis.opendocument.{kind}"
    )


NUMBERED = '<text:list-style style:name="N"><text:list-level-style-number text:level="1"/></text:list-style>'
PARENT = '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'


def items(*words: str, more: str = "") -> str:
    inner = "".join(f"<text:list-item><text:p>{word}</text:p></text:list-item>" for word in words)
    return f'<text:list text:style-name="N" {more}>{inner}</text:list>'


BODIES = {
    "a title by its style": ('<text:p text:style-name="P1">Plan</text:p><text:p>Text</text:p>', "# Plan\n\nText"),
    "numbers that go on, and begin anew": (
        items("a", "b")
        + "<text:p>x</text:p>"
        + items("c", more='text:continue-numbering="true"')
        + "<text:p>y</text:p>"
        + items("d"),
        "1. a\n2. b\n\nx\n\n3. c\n\ny\n\n1. d",
    ),
    "a list of two paragraphs in an item": (
        "<text:list><text:list-item><text:p>a</text:p><text:p>more</text:p></text:list-item></text:list>",
        "- a\n\n  more",
    ),
    "spaces, tabs and line ends": (
        '<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d</text:p>',
        "a b\tc  \nd",
    ),
    "sections, indexes and fields": (
        (
            "<text:section><text:p>in</text:p></text:section><text:table-of-content><text:index-body>"
            "<text:p>One 1</text:p></text:index-body></text:table-of-content>"
            "<text:p>Page <text:page-number>3</text:page-number></text:p>"
        ),
        "in\n\nOne 1\n\nPage 3",
    ),
    "comments, deleted text and ruby are left out": (
        (
            "<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p></text:deletion>"
            "</text:changed-region></text:tracked-changes><text:p>a<office:annotation><text:p>note</text:p>"
            "</office:annotation><text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>kan</text:ruby-text>"
            "</text:ruby></text:p>"
        ),
        "a漢",
    ),
    "markup in the words": ("<text:p>&lt;b&gt;1 &amp; 2&lt;/b&gt;</text:p>", "<b>1 & 2</b>"),
    "cells that repeat are bounded": (
        (
            '<table:table><table:table-row><table:table-cell table:number-columns-repeated="1000000"><text:p>x</text:p>'
            "</table:table-cell></table:table-row></table:table>"
        ),
        "\n".join(["|" + " x |" * 50, "|" + " --- |" * 50]),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_open_document_becomes_markdown(name: str) -> None:
    body, expected = BODIES[name]
    assert read_open_document(document(body, NUMBERED + PARENT)) == expected


def test_slides_have_titles_notes_and_a_mark_where_they_are_hidden() -> None:
    styles = (
        '<style:style style:name="h" style:family="drawing-page"><style:drawing-page-properties '
        'presentation:visibility="hidden"/></style:style>'
    )
    title = '<draw:frame presentation:class="title"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    notes = (
        '<presentation:notes><draw:page-thumbnail/><draw:frame presentation:class="notes"><draw:text-box>'
        "<text:p>Smile.</text:p></draw:text-box></draw:frame></presentation:notes>"
    )
    grouped = "<draw:g><draw:custom-shape><text:p>In a group</text:p></draw:custom-shape></draw:g>"
    body = (
        f"<draw:page>{title.format('One<text:line-break/>two')}{grouped}{notes}</draw:page>"
        '<draw:page draw:style-name="h"><draw:frame draw:name="Chart"><draw:object/><draw:image/></draw:frame>'
        "</draw:page>"
    )
    assert read_open_document(document(body, styles, kind="presentation")) == (
        "## Slide 1: One two\n\nIn a group\n\nNotes: Smile.\n\n## Slide 2 (hidden)\n\n[Picture: Chart]"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (document("<text:p/>"), "no text"),
        (document("<draw:page/>", kind="presentation"), "no text"),
        (document("x", manifest="<m:encryption-data/>"), "password"),
        (archive({"encrypted-package": b"\x00", "META-INF/manifest.xml": "<m/>"}), "password"),
    ],
    ids=["empty", "empty slides", "a password", "a password, as a whole"],
)
def test_an_open_document_without_text_is_named(data: bytes, words: str) -> None:
    with pytest.raises(NoText, match=words):
        read_open_document(data)


CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/a.opf"/>'
    "</rootfiles></container>"
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
    "<dc:title>A\n book</dc:title><dc:creator>Ada</dc:creator><dc:creator>Zoë</dc:creator></metadata><manifest>"
    '<item id="i2" href="text/chapter%20two.xhtml"/><item id="i1" href="../one.xhtml"/><item id="gone" href="x.html"/>'
    '</manifest><spine><itemref idref="i1"/><itemref idref="gone"/><itemref idref="i2"/></spine></package>'
)
CHAPTERS: dict[str, str | bytes] = {
    "one.xhtml": '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "x.dtd"><html><body><h1>Eins</h1></body></html>',
    "OEBPS/text/chapter two.xhtml": "<?xml version='1.0' encoding='utf-16'?><html><p>Zwei</p></html>".encode("utf-16"),
}
BOOK: dict[str, str | bytes] = {"META-INF/container.xml": CONTAINER, "OEBPS/a.opf": PACKAGE, **CHAPTERS}


def lock(path: str) -> dict[str, str | bytes]:
    """What a book says of a part of it that is encrypted."""
    return {"META-INF/encryption.xml": f'<encryption><CipherReference URI="{path}"/></encryption>'}


def test_a_book_is_read_in_the_order_of_its_chapters() -> None:
    wanted = "Title: A book\nBy: Ada, Zoë\n\n# Eins\n\nZwei"
    assert read_book(archive(BOOK)) == wanted
    assert read_book(archive(BOOK | lock("OEBPS/fonts/a.otf"))) == wanted, "a font may be locked"


def test_a_book_that_cannot_be_read_is_named() -> None:
    with pytest.raises(NoText, match="protected"):
        read_book(archive(BOOK | lock("OEBPS/text/chapter%20two.xhtml")))
    with pytest.raises(NoText, match="no text"):
        read_book(archive(BOOK | dict.fromkeys(CHAPTERS, "<html><body><img src='a.png'/></body></html>")))


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (archive({"content.xml": "<a/>"}, "application/vnd.oasis.opendocument.text-template"), kinds.ODT),
        (archive({"content.xml": "<a/>"}, "application/vnd.oasis.opendocument.presentation-template"), kinds.ODP),
        (archive({"content.xml": "<a/>"}, "application/vnd.oasis.opendocument.spreadsheet-template"), kinds.ODS),
        (archive(BOOK, kinds.EPUB), kinds.EPUB),
        (archive(BOOK), kinds.EPUB),
        (b"{\\rtf1\\ansi{\\pict\\bin3 \x00\x01\x02} text}", kinds.RTF),
    ],
    ids=["template", "template of slides", "template of sheets", "book", "book without its type", "bytes in Rich Text"],
)
def test_kinds_of_documents_are_known(data: bytes, wanted: str) -> None:
    assert kind_of_file(data, "a.bin") == wanted


def test_a_drawing_of_libreoffice_has_a_way_on() -> None:
    found = kind_of_file(archive({"content.xml": "<a/>"}, "application/vnd.oasis.opendocument.graphics"), "plan.odg")
    assert isinstance(found, Unreadable)
    assert str(refusal(found, "plan.odg")).startswith(
        "plan.odg is a drawing, formula or database of LibreOffice. Save it as PDF"
    )
