"""docs/parity.md maps rows of the seeds to a module and a test; both must exist, and no row may be missing."""

import ast
import re
from collections.abc import Iterable
from functools import cache

from tests.house.repository import ROOT

_ID = r"(?:[A-FU]\d*\.[\w-]+|H\.\w+\.\w+)"
_ROW = re.compile(rf"^\|\s*(?P<row>{_ID})\s*\|[^|]*\|(?P<module>[^|]*)\|(?P<test>[^|]*)\|\s*$")
_ABSENT = re.compile(rf"^\|\s*(?P<row>{_ID})\s*\|[^|]*\|\s*(?P<why>[^|]*?)\s*\|\s*$")

_WHOLE: dict[str, Iterable[int]] = {
    "A1": range(1, 26),
    "A2": range(1, 27),
    "A5": range(1, 28),
    "A6": range(1, 15),
    "A12": range(1, 11),
    "A13": range(1, 12),
}
_WHOLE |= {"A14": range(1, 13), "A16": range(1, 16), "D1": range(1, 26), "D2": range(1, 17), "F": range(1, 26)}
_WHOLE |= {"A3": range(1, 28), "A4": range(1, 32), "B4": range(1, 29), "B5": range(1, 7)}
_WHOLE |= {"U2": (*range(13, 23), *range(32, 39))}  # branches, growth of the storage, context and memory
_SUITES = ("session", "provider", "skills", "search", "init-lifecycle", "compaction", "postgres-providers")
_TOLD = {f"C6.{number}" for number in range(1, 52)} | {f"C4.{name}" for name in _SUITES}
"""Rows that must be tests, and cannot stand among what is not here."""


def _lines() -> list[str]:
    return (ROOT / "docs/parity.md").read_text(encoding="utf-8").splitlines()


def _rows() -> list[tuple[str, list[str], list[str]]]:
    found = [match for line in _lines() if (match := _ROW.match(line))]
    return [(m["row"], _ticked(m["module"]), _ticked(m["test"])) for m in found]


def _absent() -> dict[str, str]:
    return {match["row"]: match["why"] for line in _lines() if (match := _ABSENT.match(line))}


def _ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@cache
def _names(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(str(getattr(node, "name", "")) for node in ast.walk(tree))


def _defines(path: str, name: str) -> bool:
    file = ROOT / path
    if not file.is_file():
        return False
    if path.endswith(".py"):
        return name in _names(path)
    return name in file.read_text(encoding="utf-8")


def test_the_table_is_there() -> None:
    assert "| seed row | what | module | test |" in _lines()


def test_every_line_of_a_table_is_understood() -> None:
    """A line that the patterns do not match would escape every other test."""
    lines = [line for line in _lines() if line.startswith("|") and not line.startswith(("| seed row", "|---"))]
    odd = [line for line in lines if not _ROW.match(line) and not _ABSENT.match(line)]
    assert not odd, "\n".join(odd)


def test_every_module_of_the_table_exists() -> None:
    missing = [f"{row}: {path}" for row, modules, _ in _rows() for path in modules if not (ROOT / path).exists()]
    missing += [f"{row} names no module" for row, modules, _ in _rows() if not modules]
    assert not missing, "\n".join(missing)


def test_every_test_of_the_table_exists() -> None:
    missing = []
    for row, _, tests in _rows():
        assert tests, f"{row} names no test"
        for test in tests:
            path, _, name = test.partition("::")
            if not _defines(path, name.partition("[")[0]):
                missing.append(f"{row}: {test}")
    assert not missing, "\n".join(missing)


def test_no_row_is_missing_and_none_is_told_twice() -> None:
    here = [row for row, _, _ in _rows()]
    told = [*here, *_absent()]
    wanted = {f"{section}.{number}" for section, numbers in _WHOLE.items() for number in numbers}
    assert sorted(wanted - set(told)) == []
    assert sorted({row for row in told if told.count(row) > 1}) == []
    assert sorted(_TOLD - set(here)) == []


def test_what_is_not_here_is_later_or_left_out() -> None:
    odd = [row for row, why in _absent().items() if not re.fullmatch(r"(later|not taken): \S.*", why)]
    assert not odd, "\n".join(odd)
