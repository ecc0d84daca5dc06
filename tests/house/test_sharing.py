"""What several tests use has a place of its own: none is taken from tests, and a fixture's name means one thing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.house.repository import PRODUCT, Finding, committed, dotted, judge, python_files

FOLDERS = (*PRODUCT, "bench", "docs", "examples", "static", "tests")


def modules_of_tests() -> set[str]:
    """Dotted names of the modules that pytest collects tests from."""
    return {dotted(path) for path in committed() if PurePosixPath(path).match("test_*.py")}


def absolute(name: str, package: list[str], level: int) -> str:
    """The name of a module that is imported from `level` packages up."""
    return ".".join([*package[: len(package) - level + 1], *([name] if name else [])]) if level else name


def named(tree: ast.Module, path: str) -> Iterator[str]:
    """The modules that a module imports or names in a string, as `pytest_plugins`, `importlib` and `-m` take them."""
    package = dotted(path).split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module or "", package, node.level)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name, dots = node.value.partition(":")[0], len(node.value) - len(node.value.lstrip("."))
            yield absolute(name[dots:], package, dots)


def taken_from_tests(tree: ast.Module, path: str, modules: set[str]) -> list[str]:
    """The modules of tests that another module takes something from."""
    return sorted(modules.intersection(named(tree, path)) - {dotted(path)})


def _fixture_call(node: ast.expr) -> ast.expr | None:
    """`pytest.fixture` of a decorator or a call, with its arguments if it has some."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Call):  # `pytest.fixture(name="x")(function)`
        return _fixture_call(function)
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return node if name == "fixture" else None


def _own_name(call: ast.expr, otherwise: str) -> str:
    given = [word.value for word in call.keywords if word.arg == "name"] if isinstance(call, ast.Call) else []
    return str(given[0].value) if given and isinstance(given[0], ast.Constant) else otherwise


def fixtures(tree: ast.Module) -> Iterator[str]:
    """Names of the fixtures that a module defines, as tests ask for them."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for call in filter(None, map(_fixture_call, node.decorator_list)):
                yield _own_name(call, node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = _fixture_call(node.value)
            if made is not None and isinstance(node.targets[0], ast.Name):
                yield _own_name(made, node.targets[0].id)


def repeated(modules: dict[str, ast.Module]) -> list[Finding]:
    """Each further place of a fixture that is defined before: the first is the one nearest to the root."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(modules, key=lambda path: (not path.endswith("/conftest.py"), path.count("/"), path)):
        for name in fixtures(modules[path]):
            places[name].append(path)
    return [
        Finding("fixture-places", f"{path}::{name}", f"is defined in {first} already")
        for name, (first, *others) in places.items()
        for path in others
    ]


def test_no_module_takes_anything_from_tests() -> None:
    modules = modules_of_tests()
    offenders = [
        f"{path}: {name}" for path, _, tree in python_files(*FOLDERS) for name in taken_from_tests(tree, path, modules)
    ]
    assert not offenders, "what several tests use has a module of its own:\n" + "\n".join(offenders)


@pytest.mark.parametrize(
    "text",
    [
        "from tests.db.test_planted import ask",
        "from tests.db import test_planted",
        "from .test_planted import ask",
        "from . import test_planted",
        "from ..db.test_planted import ask",
        "import tests.db.test_planted",
        "import tests.db.test_planted as planted",
        "def late():\n    from tests.db.test_planted import ask",
        'pytest_plugins = ("tests.db.test_planted",)',
        'importlib.import_module("tests.db.test_planted")',
        'importlib.import_module(".test_planted", __package__)',
        'product.call("tests.db.test_planted:ask", "room")',
    ],
)
def test_what_is_taken_from_tests_is_found(text: str) -> None:
    found = taken_from_tests(ast.parse(text), "tests/db/sockets.py", {"tests.db.test_planted"})
    assert found == ["tests.db.test_planted"]


@pytest.mark.parametrize(
    "text", ["from aiohttp.test_utils import TestServer", "from tests.db.planted import ask", '"See test_planted."']
)
def test_other_imports_are_left_alone(text: str) -> None:
    assert taken_from_tests(ast.parse(text), "tests/db/sockets.py", {"tests.db.test_planted"}) == []


def test_a_fixture_is_defined_in_one_place() -> None:
    judge(repeated({path: tree for path, _, tree in python_files("tests")}), {"fixture-places"})


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.fixture\ndef room(): ...",
        "@pytest.fixture()\nasync def room(): ...",
        '@pytest_asyncio.fixture(loop_scope="module")\nasync def room(): ...',
        "@fixture\ndef room(): ...",
        '@pytest.fixture(name="room")\ndef make_it(): ...',
        "class TestIt:\n    @pytest.fixture\n    def room(self): ...",
        "room = pytest.fixture(make_it)",
        'room = pytest.fixture(scope="module")(make_it)',
        'made = pytest.fixture(name="room")(make_it)',
    ],
)
def test_a_fixture_of_two_places_is_found(text: str) -> None:
    planted = {"tests/db/test_planted.py": text, "tests/conftest.py": "@pytest.fixture\ndef room(): ..."}
    [finding] = repeated({path: ast.parse(source) for path, source in planted.items()})
    assert (finding.rule, finding.where) == ("fixture-places", "tests/db/test_planted.py::room")
    assert "tests/conftest.py" in finding.said


def test_what_only_has_the_name_of_a_fixture_is_left_alone() -> None:
    text = '@pytest.fixture(name="hall")\ndef room(): ...\ndef desk(room): ...\nroom = make_room("fixture")'
    planted = {"tests/test_planted.py": text, "tests/conftest.py": "@pytest.fixture\ndef room(): ..."}
    assert repeated({path: ast.parse(source) for path, source in planted.items()}) == []
