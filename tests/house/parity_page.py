"""What the pages of parity say, read from their tables, and what is wrong with them."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.house.parity_rows import cells
from tests.house.repository import ROOT

FOLDER: Final = ROOT / "tests/house/parity"
HEADER: Final = ["row", "what", "status", "where"]
STATUSES: Final = ("shown", "different", "planned")
HOOKS: Final = re.compile(r"H\.\w+\.\w+")
"""Options of the published hooks: tests/clients/test_surface.py says which there are."""

_PACKAGE = re.compile(r"^- \*\*(?P<name>[^*]+)\*\*:", re.MULTILINE)
_TICKED = re.compile(r"`([^`]+)`")
_WORDS_OF_A_REASON: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of a table. Anything in back ticks that has a slash is a path, a path with `::` is a test."""

    id: str
    what: str
    status: str
    where: str

    @property
    def tests(self) -> list[str]:
        """Ids of tests."""
        return [text for text in _TICKED.findall(self.where) if "::" in text]

    @property
    def modules(self) -> list[str]:
        """Files and folders of the product."""
        marked = [text for text in _TICKED.findall(self.where) if "::" not in text]
        return [text for text in marked if "/" in text or (ROOT / text).exists()]

    @property
    def words(self) -> list[str]:
        """What is said besides files and tests."""
        return re.findall(r"[\w'.-]*\w", _TICKED.sub(" ", self.where))


def tables(text: str) -> list[list[str]]:
    """The cells of every line of every table, headers included."""
    return [found for line in text.splitlines() if (found := cells(line))]


def text_of_pages() -> str:
    """Return all pages, one below the other."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md")))


def rows(text: str) -> list[Row]:
    """Every row of the page."""
    lines = [found for found in tables(text) if found != HEADER and len(found) == len(HEADER)]
    return [Row(id=row, what=what, status=status, where=where) for row, what, status, where in lines]


def packages(text: str) -> list[str]:
    """The packages that the page says are to come."""
    return _PACKAGE.findall(text)


def problems(text: str, known: Collection[str]) -> list[str]:
    """Everything that is wrong with a page that is to cover these rows."""
    found = rows(text)
    ids = Counter(row.id for row in found)
    return [
        *(f"not a row: {line}" for line in tables(text) if len(line) != len(HEADER)),
        *(f"{row}: is not on the page" for row in known if row not in ids),
        *(f"{row}: is there {count} times" for row, count in ids.items() if count > 1),
        *(f"{row}: no reference has it" for row in ids if row not in known and not HOOKS.fullmatch(row)),
        *(problem for row in found for problem in _problems_of(row, packages(text))),
    ]


def _problems_of(row: Row, to_come: Collection[str]) -> Iterator[str]:
    if not row.what:
        yield f"{row.id}: does not say what it is about"
    yield from (f"{row.id}: there is no {path}" for path in row.modules if not (ROOT / path).exists())
    yield from (f"{row.id}: there is no {test}" for test in row.tests if not is_test(test))
    match row.status:
        case "shown":
            yield from (f"{row.id}: names no test" for _ in range(not row.tests))
        case "different":
            if len(row.words) < _WORDS_OF_A_REASON:
                yield f"{row.id}: has no reason"
        case "planned":
            if row.where.partition(".")[0] not in to_come:
                yield f"{row.id}: names no package that is to come"
        case _:
            yield f"{row.id}: {row.status!r} is none of {', '.join(STATUSES)}"


def is_test(test: str) -> bool:
    """Whether a test with this id exists: a function of a file of tests or of a class in it, without its parameters.

    The class may have it from a contract that it imports from another file of tests.
    """
    path, _, name = test.partition("::")
    owner, _, name = name.rpartition("::")
    return name.startswith("test_") and Path(path).name.startswith("test_") and name in _tests_of(path, owner)


@cache
def _tests_of(path: str, owner: str) -> frozenset[str]:
    """Functions of a file, or of a class there with what it inherits from classes imported by name."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    if not owner:
        return frozenset(_functions(body))
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    if owner not in classes:
        return frozenset()
    bases = [base.id for base in classes[owner].bases if isinstance(base, ast.Name)]
    homes = {base: path for base in bases if base in classes} | dict(_imported(body, bases))
    inherited = (_tests_of(home, base) for base, home in homes.items())
    return frozenset(_functions(classes[owner].body)).union(*inherited)


def _functions(body: Iterable[ast.stmt]) -> Iterator[str]:
    return (node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _imported(body: Iterable[ast.stmt], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """These names with the files that they are imported from."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name in names and alias.asname is None:
                    yield alias.name, node.module.replace(".", "/") + ".py"
