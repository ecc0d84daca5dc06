"""Rich Text (RTF): headings, lists, tables, links and notes. Pictures are not shown.

The library gives the text alone. So what has structure is marked before, by characters that no text has, and the marks
become Markdown afterwards. Text that was deleted or hidden is left out.
"""

import re
from typing import Final

from striprtf.striprtf import rtf_to_text

from tools_app.documents.readers.text import NoText, TextWriter, cleaned, table

_HEADING, _LEVEL, _IN_TABLE, _CELL, _ROW = 0xE000, 0xE010, "\ue020", "\ue021", "\ue022"
_RANKS: Final = 6  # of headings, and as many levels of lists
_GROUP: Final = re.compile(r"(?<!\\)\{\s*(?:\\\*\s*)?\\(footnote|shptxt|field)(?![a-z])")
_BRACE: Final = re.compile(r"\\[\\{}]|[{}]")
_WORD: Final = re.compile(r"(?<!\\)\\(outlinelevel|ilvl|intbl|cell|nestcell|row|pntext)(?:(-?\d+)|(?![a-z])) ?")
_HIDDEN: Final = re.compile(r"(?<!\\)\\(deleted|v)(?![a-z0-9])(?=[^{}]*\})(?![^{}]*\\(?:deleted|v)0)")
_ADDRESS: Final = re.compile(r'HYPERLINK\s+"([^"\\{}]{1,2000})"')
_CODE_PAGE: Final = re.compile(rb"\\ansicpg(\d+)")
_NOTE: Final = re.compile(r"^(\[\d+\])\s+")
_MARKS: Final = re.compile("[\ue000-\ue022]")
_ITEM: Final = re.compile(r"\s*(?:([•·▪◦‣o*–\-\uf0b7\uf0a7])|(\w{1,4}[.)]))\t+")


def read_rich_text(data: bytes) -> str:
    """The document as Markdown. Errors: `NoText`; `ValueError` and the like for a damaged one."""
    apart: dict[str, list[str]] = {"shptxt": [], "footnote": []}
    marked = _marked(_HIDDEN.sub(r"\\*", _without_groups(_decoded(data), apart)))
    notes = [f"[{number}] {note}" for number, note in enumerate(apart["footnote"], 1)]
    added = "".join(f"\\par\\pard{{{_marked(each)}}}" for each in [*apart["shptxt"], *notes])
    end = _end(marked, 0) - 1
    whole = marked[:end] + added + marked[end:]
    text: str = rtf_to_text(whole, errors="replace")  # type: ignore[no-untyped-call]
    text = cleaned(_markdown(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))
    if not text:
        raise NoText("This document has no text. Save it as PDF, or attach pictures of its pages.")
    return text


def _decoded(data: bytes) -> str:
    """The source, which is ASCII; the letters of one that is not, by its code page."""
    page = _CODE_PAGE.search(data)
    try:
        return data.decode(f"cp{page[1].decode()}" if page else "cp1252", "replace")
    except LookupError:
        return data.decode("cp1252", "replace")


def _without_groups(text: str, apart: dict[str, list[str]]) -> str:
    """The source with an address behind each link, and without notes and boxes of text, which are put into `apart`."""
    pieces: list[str] = []
    done = 0
    for found in _GROUP.finditer(text):
        if found.start() < done:
            continue
        pieces.append(text[done : found.start()])
        done = _end(text, found.start())
        inner = _without_groups(text[found.end() : done - 1], apart)
        if found[1] in apart:
            apart[found[1]].append(inner)
            pieces.append(f"[{len(apart['footnote'])}]" if found[1] == "footnote" else "")
            continue
        address = _ADDRESS.search(inner)
        is_said = address is None or address[1] in inner[address.end() :]
        pieces.append(f"{{{inner}}}" + ("" if address is None or is_said else f" ({address[1]})"))
    return "".join(pieces) + text[done:]


def _end(text: str, start: int) -> int:
    """The place behind a group; the end of the text where it is cut."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return brace.end()
    return len(text) + 1


def _marked(text: str) -> str:
    return _WORD.sub(_mark, text)


def _mark(found: re.Match[str]) -> str:
    word, number = found[1], int(found[2] or 0)
    if word == "pntext":
        return "\\listtext "
    if word == "nestcell":
        return "\\tab "
    mark = {"intbl": _IN_TABLE, "cell": _CELL, "row": _ROW}.get(word)
    if mark is None:
        mark = chr((_HEADING if word == "outlinelevel" else _LEVEL) + number) if 0 <= number < _RANKS else ""
    return f"\\mark{mark}"  # a word that means nothing, in the place of the one that did


def _markdown(text: str) -> str:
    """The lines as Markdown. Cells of a table may have several."""
    writer = TextWriter()
    rows: list[list[str]] = []
    *before_rows, rest = text.split(_ROW)
    for piece in before_rows:
        lines = piece.split("\n")
        first = next((at for at, line in enumerate(lines) if _IN_TABLE in line or _CELL in line), len(lines))
        if "".join(lines[:first]).strip():
            rows = _add(writer, rows, lines[:first])
        cells = "\n".join(lines[first:]).split(_CELL)[:-1]
        rows.append([_MARKS.sub("", cell) for cell in cells])
    _add(writer, rows, rest.split("\n"))
    return writer.text()


def _add(writer: TextWriter, rows: list[list[str]], lines: list[str]) -> list[list[str]]:
    """Add the table that ends, and the paragraphs after it. Returns the rows of the next table: none."""
    width = max(map(len, rows), default=0)
    writer.add(table([*row, *[""] * (width - len(row))] for row in rows))
    items: list[str] = []
    for line in lines:
        shown = _paragraph(line)
        if shown.lstrip().startswith("- ") or _ITEM.match(_MARKS.sub("", line)):
            items.append(shown)
            continue
        writer.add("\n".join(items))
        items.clear()
        writer.add(shown)
    writer.add("\n".join(items))
    return []


def _paragraph(line: str) -> str:
    ranks = [ord(mark) for mark in _MARKS.findall(line)]
    plain = _MARKS.sub("", line)
    heading = next((mark - _HEADING for mark in ranks if mark < _LEVEL), None)
    if heading is not None and plain.strip():
        return f"{'#' * (heading + 1)} {' '.join(plain.split())}"
    item = _ITEM.match(plain)
    if item is None:
        return _NOTE.sub(r"\1 ", plain.strip())
    level = next((mark - _LEVEL for mark in ranks if _LEVEL <= mark < _LEVEL + _RANKS), 0)
    return f"{'  ' * level}{'-' if item[1] else item[2]} {plain[item.end() :].strip()}"
