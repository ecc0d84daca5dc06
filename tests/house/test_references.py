"""The files, folders and modules that docstrings, comments and pages name exist."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache

import pytest

from tests.house.repository import PRODUCT, ROOT, committed, python_files

_READ = (".md", ".py", ".ts", ".tsx", ".js", ".css", ".toml", ".in", ".yml", "Makefile", ".importlinter")
_OF_HISTORY = ("CHANGELOG.md", "docs/adr/")
"""Pages that tell which name a thing had when it was made."""
_TOPS = (*PRODUCT, "tests", "bench", "docs", "examples", "requirements", "static", "templates")
_FILE = re.compile(r"`([\w-][\w./-]*\.(?:py|tsx?|js|css))(?:::[\w.]+)?`")  # an absolute path is one of a workspace
_PATH = re.compile(rf"`((?:{'|'.join(_TOPS)})/[\w./-]*)(?:::[\w.]+)?`")
_MODULE = re.compile(rf"`((?:{'|'.join((*PRODUCT, 'tests', 'bench'))})(?:\.\w+)+)(?:\(\))?`")
_LITERAL = re.compile(r'"([a-z]\w*\.\w+)"')

_MADE = ("static/dist", "static/node_modules", "chat/templates/chat", "chat/static/think")
_OF_OTHERS = {
    "agents.py",
    "tests/test_agents.py",
    "static/src/app/panels/links.tsx",
    "static/src/app/settings/links.tsx",
    "scripts/collect.js",
    "main.js",
    "main.0123456789ab.js",
    "app.0123456789ab.js",
    "stem-8LETTERS.js",
    "dist/just_bash.js",
}
"""Files that a developer writes, or that a build makes; `_MADE` are such folders."""
_OF_CHAT = ("clear", "history", "messages", "model", "model_choice", "model_notice", "regenerate", "state")
_VARIABLES = {f"chat.{name}" for name in _OF_CHAT}
"""Attributes of a variable `chat`: the client in Python, and a conversation of another product."""


class Tree:
    """Paths of files, and what names them: all of a path, its end, or one of its folders."""

    def __init__(self, paths: Collection[str], read: Callable[[str], str]) -> None:
        self.read = cache(read)
        self.files = set(paths)
        self.folders = {path[:at] for path in paths for at, letter in enumerate(path) if letter == "/"}
        self._ends = {
            (top, path[at + 1 :]) for path in paths for at in _slashes(path) for top in ("", path.partition("/")[0])
        }

    def has_file(self, name: str, top: str) -> bool:
        """Whether a file has this path, or a path in this top folder that ends so."""
        return name in self.files or (top, name) in self._ends

    def has_code(self, name: str) -> bool:
        """Whether a dotted name is a module, a package, or something that a module's text names."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            place = "/".join(parts[:length])
            if f"{place}.py" in self.files:
                text = self.read(f"{place}.py")
                return all(re.search(rf"\b{part}\b", text) for part in parts[length:])
            if place in self.folders:
                return length == len(parts)
        return False


def _slashes(path: str) -> list[int]:
    return [at for at, letter in enumerate(path) if letter == "/"]


def lost(path: str, text: str, tree: Tree, literals: Collection[str]) -> Iterator[str]:
    """Names in a text that lead nowhere.

    A file may be named by the end of its path: in code one of the same top folder, elsewhere any.
    """
    top = path.partition("/")[0] if path.startswith((*PRODUCT, "static/")) else ""
    for name in _FILE.findall(text):
        if name not in _OF_OTHERS and not tree.has_file(name, top):
            yield name
    for name in _PATH.findall(text):
        folder = name.rstrip("/.")
        is_there = folder in tree.files or folder in tree.folders or folder.startswith(_MADE)
        if not is_there and not _FILE.fullmatch(f"`{name}`"):
            yield name
    for name in _MODULE.findall(text):
        if name not in literals and name not in _VARIABLES and not tree.has_code(name):
            yield name


def test_what_prose_names_exists() -> None:
    tree = Tree(committed(), lambda path: (ROOT / path).read_text(encoding="utf-8"))
    literals = {name for _, text, _ in python_files(*PRODUCT) for name in _LITERAL.findall(text)}
    read = [path for path in committed() if path.endswith(_READ) and not path.startswith(_OF_HISTORY)]
    found = [
        f"{path}: {name}"
        for path in read
        if "/migrations/" not in path and "/fixtures/" not in path and path != "tests/house/test_references.py"
        for name in lost(path, tree.read(path), tree, literals)
    ]
    assert len(read) > 1500
    assert not found, "\n".join(found)


PLANTED = Tree(["chat/models.py", "chat/core/loop.py", "static/src/app/main.tsx"], lambda path: "class Turn: ...")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("# See `gone.py`.", "gone.py"),
        ("`chat/core/gone.py::f`", "chat/core/gone.py"),
        ("`app/gone.tsx`", "app/gone.tsx"),
        ("`tools_app/gone/`", "tools_app/gone/"),
        ("`chat.gone`", "chat.gone"),
        ("`chat.models.Gone`", "chat.models.Gone"),
        ("`tests.gone`", "tests.gone"),
    ],
)
def test_a_name_that_leads_nowhere_is_found(text: str, named: str) -> None:
    assert list(lost("chat/x.py", text, PLANTED, ())) == [named]


def test_names_that_lead_somewhere_are_left_alone() -> None:
    text = "`loop.py` `chat/core` `chat.models.Turn` `chat.core.loop` `chat.E001` `/agents/x.py` `static/dist/x`"
    assert list(lost("chat/x.py", text, PLANTED, {"chat.E001"})) == []


def test_code_names_files_of_its_own_top_folder() -> None:
    assert list(lost("fibers/x.py", "`loop.py`", PLANTED, ())) == ["loop.py"]
    assert list(lost("docs/x.md", "`loop.py`", PLANTED, ())) == []
