"""The ids of the rows of the references, and the list of them that is kept here.

The references lie outside of this repository. `tests/house/parity_rows.txt` has the ids alone, so that a clone without
them knows what the pages in tests/house/parity must cover. Write it anew after a reference has changed:

    .venv/bin/python -m tests.house.parity_rows ../shared/reference
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

LIST: Final = Path(__file__).with_name("parity_rows.txt")
DIRECTIONS: Final = {"C→S": "in", "S→C": "out"}
SPLIT: Final = ("C3", "C4")
"""Sections in which one line of a table names several suites, each of which is a row here."""

_ID = re.compile(r"[A-F]\d+(?:\.\w+)?")
_HEADING = re.compile(r"#{1,3} (?P<title>.+)")
_NUMBERED = re.compile(r"(?P<number>\d+)\. ")
_SECTION = re.compile(r"(?P<section>[A-F]\.?\d*)\b")

Parse = Callable[[str, list[str]], Iterable[str]]


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The lines below each heading, under the newest heading that names a section: "A2", "B", "2"."""
    section = ""
    for is_heading, group in groupby(text.splitlines(), key=lambda line: bool(_HEADING.match(line))):
        lines = list(group)
        if not is_heading:
            yield section, lines
            continue
        for line in lines:
            title = line.lstrip("# ")
            named = _SECTION.match(title) or re.match(r"(?P<section>\d+)\. ", title)
            section = named["section"].replace(".", "") if named else section


def cells(line: str) -> list[str]:
    """The cells of a line of a table; none for other lines, headers' underlines included."""
    found = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
    return [] if set("".join(found)) <= set("-: ") else found


def _tables(lines: list[str]) -> Iterator[list[list[str]]]:
    """Each table without its header, as cells."""
    for is_table, group in groupby(lines, key=lambda line: line.startswith("|")):
        if is_table:
            yield [found for line in list(group)[1:] if (found := cells(line))]


def _numbered(prefix: str, lines: list[str]) -> list[str]:
    return [f"{prefix}.{match['number']}" for line in lines if (match := _NUMBERED.match(line))]


def _suite(cell: str) -> str:
    """ "fiber (think)" is "fiber-think", "think-session" stays, "e2e: a 1, b 2" is "e2e"."""
    match = re.match(r"([\w-]+)(?:[\w .]*\((\w+))?", cell)
    assert match is not None, cell
    first, inside = match.groups()
    return f"{first}-{inside.lower()}" if inside and first != "type" else first


def _suites(cell: str) -> list[str]:
    """ "shell: memory 41, git 26" is "shell-memory", "shell-git"."""
    package, _, rest = cell.rpartition(": ")
    names = [re.sub(r" \d+$", "", name.strip()).replace("/", "-") for name in rest.split(",")]
    return [f"{package}-{name}" if package else name for name in names]


def _frame(section: str, row: list[str]) -> str:
    name = re.findall(r"`([^`]+)`", row[1])[0].removeprefix("cf_agent_")
    return f"{section}.{DIRECTIONS[row[0]]}.{name}"


def _think_row(section: str, row: list[str]) -> list[str]:
    if row[0] in DIRECTIONS:
        return [_frame(section, row)]
    if _ID.fullmatch(row[0]):
        return [row[0]]
    if section == "E":
        return [f"E.{row[0].split()[0].lower()}"]
    if section in SPLIT:
        return [f"{section}.{name}" for name in _suites(row[0])]
    return [f"{section}.{_suite(row[0])}"] if section.startswith("C") else []


def _think(section: str, lines: list[str]) -> list[str]:
    if section in {"C6", "F"}:
        return _numbered(section, lines)
    return [row for table in _tables(lines) for cell in table for row in _think_row(section, cell)] if section else []


def _opencode(section: str, lines: list[str]) -> list[str]:
    rows = [row for table in _tables(lines) for row in table]
    if section == "B13":
        return [f"oc.B13.{number}" for number, _ in enumerate(rows, 1)]
    return [f"oc.{row[0]}" for row in rows if _ID.fullmatch(row[0])]


def _durable_state(section: str, lines: list[str]) -> list[str]:
    if section == "A20":
        return _numbered("ds.A20", lines)
    rows = [row for table in _tables(lines) for row in table]
    return [f"ds.{row[0]}" for row in rows if _ID.fullmatch(row[0])]


def _durable_streams(section: str, lines: list[str]) -> list[str]:
    return [f"st.{section[0]}.{section[1:]}"] if section[1:] and any(line.strip() for line in lines) else []


def _users_ask(section: str, lines: list[str]) -> list[str]:
    return _numbered("ua.2", lines) if section == "2" else []


FILES: Final[dict[str, Parse]] = {
    "think.md": _think,
    "opencode.md": _opencode,
    "durable-state.md": _durable_state,
    "users-ask.md": _users_ask,
    "durable-streams.md": _durable_streams,
}


def rows_of(folder: Path) -> list[str]:
    """Every row of the references in this folder, in their order."""
    found: list[str] = []
    for name, parse in FILES.items():
        of_file = [
            row
            for section, lines in sections((folder / name).read_text(encoding="utf-8"))
            for row in parse(section, lines)
        ]
        found += dict.fromkeys(of_file) if parse is _durable_streams else of_file  # a section is one row
    return found


def folded(rows: Iterable[str]) -> str:
    """The list as it is kept: a line for each beginning, neighbouring numbers as a range."""
    lines = []
    for prefix, group in groupby(rows, key=_prefix):
        tails = [row.removeprefix(prefix) for row in group]
        lines.append(f"{prefix} {' '.join(_ranges(tails))}")
    return "\n".join(lines) + "\n"


def _prefix(row: str) -> str:
    match = re.fullmatch(r"(.*?)(\d+|(?<=\.)[^.]+)", row)
    assert match is not None, row
    return match[1]


def _ranges(tails: list[str]) -> Iterator[str]:
    first = last = ""
    for tail in [*tails, ""]:
        if last.isdigit() and tail.isdigit() and int(tail) == int(last) + 1:
            last = tail
            continue
        if first:
            yield first if first == last else f"{first}-{last}"
        first = last = tail


def kept() -> list[str]:
    """The rows of the kept list."""
    found = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        prefix, *tails = line.split(" ")
        for tail in tails:
            span = re.fullmatch(r"(\d+)-(\d+)", tail)
            numbers = range(int(span[1]), int(span[2]) + 1) if span else [tail]
            found += [f"{prefix}{number}" for number in numbers]
    return found


if __name__ == "__main__":
    LIST.write_text(folded(rows_of(Path(sys.argv[1]))), encoding="utf-8")
