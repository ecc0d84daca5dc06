"""Tests wait for what they need: a sleep that is more than a moment says on its line why it has to be one."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.house.repository import ROOT, committed

CLOCKS = {"time", "asyncio", "anyio", "trio"}
MOMENT_SECONDS = 0.09
"""Looks of a loop that waits for a state lie no further apart."""
_CODES = re.compile(r"noqa(: [A-Z0-9, ]+)?|type: ignore(\[[a-z, -]+\])?")


def reasons(text: str) -> set[int]:
    """Lines to which a comment gives a reason; one that stands alone counts for the line below it."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and re.search(r"[a-z]{2}", _CODES.sub("", token.string)):
            is_alone = not token.line[: token.start[1]].strip()
            found.add(token.start[0] + is_alone)
    return found


def clock_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names of the modules that sleep, and of functions imported from them, in this file."""
    modules, functions = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name in CLOCKS}
        elif isinstance(node, ast.ImportFrom) and node.module in CLOCKS:
            functions |= {each.asname or each.name for each in node.names if each.name == "sleep"}
    return modules, functions


def pauses(tree: ast.Module) -> Iterator[tuple[ast.Call, float]]:
    """Every call that does nothing but let time pass, with what one second is in its unit."""
    modules, functions = clock_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr="sleep")) if module in modules:
                yield node, 1
            case ast.Call(func=ast.Name(id=name)) if name in functions:
                yield node, 1
            case ast.Call(func=ast.Attribute(attr="wait_for_timeout")):
                yield node, 1000
            case ast.Call(func=ast.Attribute(value=ast.Call(func=called), attr="wait"), args=[_, *_]):
                if ast.unparse(called).endswith("Event"):  # which nothing can set
                    yield node, 1


def unexplained(text: str) -> list[int]:
    """Lines of the pauses that are neither a moment nor explained."""
    long = [call for call, second in pauses(ast.parse(text)) if not is_moment(call, second)]
    explained = reasons(text) if long else set()
    return sorted(
        call.lineno for call in long if explained.isdisjoint(range(call.lineno, (call.end_lineno or call.lineno) + 1))
    )


def is_moment(call: ast.Call, second: float) -> bool:
    """Whether a pause is short, whatever the run."""
    match call.args:
        case [ast.Constant(value=int() | float() as length), *_]:
            return length <= MOMENT_SECONDS * second
    return False


def is_test_code(path: str) -> bool:
    return path.startswith("tests/") and path.endswith(".py")


def test_a_sleep_in_a_test_says_why() -> None:
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in committed() if is_test_code(path)}
    found = [
        f"{path}:{line}"
        for path, text in texts.items()
        if "sleep" in text or ".wait" in text  # to read the others would take longer
        for line in unexplained(text)
    ]
    assert found == [], "wait for a row, a frame, a file or a state of the page, or say on that line why none will do"


@pytest.mark.parametrize(
    "planted",
    [
        "time.sleep(1)",
        "await asyncio.sleep(0.1)",
        "await anyio.sleep(pause)",
        "await doze(2)",
        "clock.sleep(0.5)",
        "tab.page.wait_for_timeout(100)",
        "threading.Event().wait(0.4)",
        "time.sleep(1)  # noqa: ASYNC251",
        "# it has happened by now\n    pass\n    time.sleep(1)",
        "time.sleep(1); pause = 1\n    # too late",
    ],
)
def test_a_sleep_without_a_reason_is_found(planted: str) -> None:
    head = "import time, asyncio, anyio, time as clock\nfrom asyncio import sleep as doze\nasync def test_it():\n    "
    assert unexplained(f"{head}{planted}\n") == [4 + planted.partition("sleep(1)")[0].count("\n")]


@pytest.mark.parametrize(
    "planted",
    [
        "time.sleep(0.09)",
        "await asyncio.sleep(0)",
        "time.sleep(60)  # a tool that hangs",
        "time.sleep(2)  # noqa: ASYNC251 - the mistake under test",
        "# a server that stalls\n    time.sleep(2)",
        "await asyncio.sleep(\n        pause  # a client that is slow\n    )",
        "tab.page.wait_for_timeout(50)",
        "released.wait(20)",
        "threading.Event().wait()",
        "sleep('well')",
        "source = 'time.sleep(60)'",
    ],
)
def test_moments_reasons_and_other_waits_are_left_alone(planted: str) -> None:
    assert unexplained(f"import time, asyncio\nasync def test_it():\n    {planted}\n") == []
