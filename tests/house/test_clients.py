"""docs/reference/clients.md says which test tries which sequence with which client: nothing may be missing or wrong."""

import ast
import re
from functools import cache
from itertools import product

from tests.house.repository import ROOT

LINES = ("sdk7", "sdk6")
TRANSPORTS = ("hook", "http", "socket")
SEQUENCES = (
    *(f"5.{number}" for number in range(1, 7)),
    *(f"5.7.{number}" for number in range(1, 6)),
    *(f"5.{number}" for number in range(8, 16)),
)
_ROW = re.compile(r"^\| (?P<sequence>5[\d.]+) \| (?P<transports>[^|]+) \| (?P<what>[^|]+) \| (?P<tests>[^|]+) \|$")
_ALL_AT_ONCE = "open_everything"
_OBSERVER = re.compile(rf'open_two|look_on|observer|begin\(|{_ALL_AT_ONCE}|open\("late"')
_ALONE = "no observer"

Ways = frozenset[tuple[str, str]]


def _rows() -> list[tuple[str, list[str], str, list[str]]]:
    text = (ROOT / "docs/reference/clients.md").read_text(encoding="utf-8")
    found = [match for line in text.splitlines() if (match := _ROW.match(line))]
    return [
        (row["sequence"], row["transports"].split(", "), row["what"], re.findall(r"`([^`]+)`", row["tests"]))
        for row in found
    ]


@cache
def _parsed(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def _named_ways() -> dict[str, Ways]:
    """What the decorators of tests/clients/ways.py stand for. `LINES` is the hook alone."""
    found = {}
    for node in _parsed("tests/clients/ways.py").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names, values = (ast.literal_eval(argument) for argument in node.value.args)
            pairs = [(value, "hook") for value in values] if names == "line" else values
            found[ast.unparse(node.targets[0])] = frozenset(pairs)
    return found


def _function(test: str) -> ast.FunctionDef | None:
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file():
        return None
    return next((n for n in _parsed(path).body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def _ways(function: ast.FunctionDef) -> Ways:
    if _ALL_AT_ONCE in ast.unparse(function):
        return _named_ways()["EVERY_WAY"]
    names = [ast.unparse(decorator) for decorator in function.decorator_list]
    return frozenset().union(*(_named_ways()[name] for name in names if name in _named_ways()))


def _has_observer(test: str, function: ast.FunctionDef) -> bool:
    is_automatic = any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and "usefixtures('observer')" in ast.unparse(node.value)
        for node in _parsed(test.partition("::")[0]).body
    )
    return is_automatic or _OBSERVER.search(ast.unparse(function).replace("'", '"')) is not None


def test_every_sequence_has_a_row_for_every_transport() -> None:
    sent = [(sequence, transport) for sequence, transports, _, _ in _rows() for transport in transports]
    assert sorted(sent) == sorted(product(SEQUENCES, TRANSPORTS))


def test_every_test_exists_with_an_observer() -> None:
    odd = []
    for sequence, _, what, tests in _rows():
        assert tests, f"{sequence} names no test"
        for test in tests:
            function = _function(test)
            if function is None:
                odd.append(f"{sequence}: there is no {test}")
            elif _ALONE not in what and not _has_observer(test, function):
                odd.append(f"{sequence}: no observer in {test}")
    assert not odd, "\n".join(odd)


def test_every_test_runs_with_both_ai_sdks_over_its_transports() -> None:
    odd = []
    for sequence, transports, _, tests in _rows():
        for test in tests:
            function = _function(test)
            assert function is not None
            missing = set(product(LINES, transports)) - _ways(function)
            odd += [f"{sequence}: {test} does not run with {line} over {way}" for line, way in sorted(missing)]
    assert not odd, "\n".join(odd)
