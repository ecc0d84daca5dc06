r"""Rich Text as Word, WordPad and others write it. The words of the format: Microsoft's RTF Specification 1.9.1."""

import pytest

from tools_app.documents.readers.rich_text import read_rich_text
from tools_app.documents.readers.text import NoText

HEAD = (
    r"{\rtf1\ansi\ansicpg1252\uc1\deff0{\fonttbl"
    r"{\f0\fswiss\fcharset0 Arial;}{\f1\fcharset204 Arial CYR;}{\f2\fcharset2 Symbol;}}"
)
STYLES = r"{\stylesheet{\s1\outlinelevel0 heading 1;}{\s2 Normal;}}{\info{\title Not shown}{\author Ada}}"
CASES = {
    "headings by their level in the outline": (
        r"\pard\s1\outlinelevel0 One\par\pard\s3\outlinelevel2{\b Three}\par\pard Text\par",
        "# One\n\n### Three\n\nText",
    ),
    "a heading with its number": (
        r"\pard\outlinelevel1{\listtext\pard 2.1\tab}Costs\par",
        "## 2.1 Costs",
    ),
    "bullets of WordPad": (
        (
            r"\pard{\pntext\f2\'B7\tab}{\*\pn\pnlvlblt\pnf2{\pntxtb\'B7}}Eggs\par{\pntext\f2\'B7\tab}Milk\par"
            r"\pard Done\par"
        ),
        "- Eggs\n- Milk\n\nDone",
    ),
    "lists of Word with levels and numbers": (
        (
            r"\pard{\listtext\pard\plain\f2\'b7\tab}\ilvl0\ls1 A\par\pard{\listtext o\tab}\ilvl1\ls1 B\par"
            r"\pard{\listtext 10.\tab}\ls2 C\par"
        ),
        "- A\n  - B\n10. C",
    ),
    "a table, with a line end and a bar in a cell": (
        (
            r"\pard Before\par\trowd\cellx1000\cellx2000\pard\intbl Name\cell Price | net\cell\row"
            r"\trowd\cellx1000\cellx2000\pard\intbl Peas\par and beans\cell 5 \'80\cell\row\pard After\par"
        ),
        "Before\n\n| Name | Price \\| net |\n| --- | --- |\n| Peas and beans | 5 € |\n\nAfter",
    ),
    "two tables apart, and a row that is short": (
        r"\pard\intbl a\cell b\cell\row\pard\intbl c\cell\row\pard Between\par\pard\intbl d\cell\row",
        "| a | b |\n| --- | --- |\n| c |  |\n\nBetween\n\n| d |\n| --- |",
    ),
    "a table in a cell": (
        r"\pard\intbl\itap2 x\nestcell y\nestcell{\*\nesttableprops\trowd\nestrow}\pard\intbl\itap1\cell z\cell\row",
        "| x y | z |\n| --- | --- |",
    ),
    "letters in every notation": (
        r"\pard \'fc \u233\'e9 \u8211? \u-10179?\u-8694? \{\}\\ \~\endash\emdash\ldblquote a\rdblquote\f1 \'cf\'f0\par",
        "ü é – 😊 {}\\ \xa0–—“a”Пр",
    ),
    "hidden and deleted text": (
        r"\pard{\v secret}seen {\deleted\revauthdel1 gone}{\revised\revauth1 new}{\v off\v0 on}\par",
        "seen newoffon",
    ),
    "words that begin alike are others": (r"\viewkind4\vern0\cellx10\rowx\pard Text\par", "Text"),
    "links with their address": (
        (
            r'\pard{\field{\*\fldinst{HYPERLINK "https://example.org/a"}}{\fldrslt{\ul the page}}} and '
            r'{\field{\*\fldinst HYPERLINK "https://example.org"}{\fldrslt https://example.org}} '
            r'{\field{\*\fldinst HYPERLINK \\l "_Toc1"}{\fldrslt Chapter}} {\field{\*\fldinst PAGE}{\fldrslt 3}}\par'
        ),
        "the page (https://example.org/a) and https://example.org Chapter 3",
    ),
    "notes below the text": (
        (
            r"\pard One{\super\chftn{\footnote\pard\plain\chftn  First with {\b a group}.}} two"
            r"{\*\footnote\chftn\tab Second.}\par"
        ),
        "One[1] two[2]\n\n[1] First with a group.\n\n[2] Second.",
    ),
    "a box of text": (
        r"\pard Around{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 202}}{\shptxt\pard In the box\par}}}\par",
        "Around\n\nIn the box",
    ),
    "pictures are left out": (r"\pard A{\pict\pngblip 89504e470d0a1a0a}{\*\shppict{\pict 00ff}}B\par", "AB"),
    "words of the source in the text": (
        r"\pard Write \\cell, \\row and \\footnote\{x\}.\par",
        "Write \\cell, \\row and \\footnote{x}.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rich_text_becomes_markdown(name: str) -> None:
    source, expected = CASES[name]
    assert read_rich_text((HEAD + STYLES + source + "}").encode("ascii")) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (rb"{\rtf1\ansi\ansicpg1251 \'cf\'f0\'e8\'e2\'e5\'f2}", "Привет"),
        (rb"{\rtf1\ansi\ansicpg1251 " + "Привет".encode("cp1251") + b"}", "Привет"),
        (rb"{\rtf1\ansi\ansicpg932 \'93\'fa\'96\'7b}", "日本"),
        (rb"{\rtf1\ansi\ansicpg99999 plain}", "plain"),
        (rb"{\rtf1\ansi \'81 and more}", "� and more"),
        (rb"{\rtf1 cut {\b off {\footnote in the", "cut off [1]\n\n[1] in the"),
        (b"{\\rtf1 Line\\par\r\nend\\par\r\n}\r\n\x00", "Line\n\nend"),
    ],
    ids=["code page", "letters as bytes", "two bytes", "no code page", "no letter", "cut", "behind the end"],
)
def test_rich_text_is_read_by_its_code_page_and_to_its_end(source: bytes, expected: str) -> None:
    assert read_rich_text(source) == expected


def test_rich_text_without_words_is_named() -> None:
    with pytest.raises(NoText, match="no text"):
        read_rich_text(rb"{\rtf1{\pict 00ff}}")
