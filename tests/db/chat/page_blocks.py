"""The blocks of code of the pages for developers, and names for what a reader has of their own."""

import ast
import builtins
import importlib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.house.repository import ROOT
from thinkproject.reference import PUBLIC

PAGES = ("README.md", "docs/quickstart.md", "docs/howto/*.md", "docs/reference/*.md")
_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page. `line`: of its first line, from 1."""

    page: str
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


class Anything:
    """Stands for a name that a page leaves to its reader: can be called, indexed, added to and gone through."""

    def __init__(self, *_args: object, **_options: object) -> None:
        """Takes whatever it is called with."""

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: object, **_options: object) -> "Anything":
        return self

    def __getitem__(self, _key: object) -> "Anything":
        return self

    def __add__(self, _other: object) -> "Anything":
        return self

    def __iter__(self) -> Iterator["Anything"]:
        return iter(())


def blocks(*languages: str) -> list[Block]:
    """The blocks of all pages in these languages, in order."""
    found = []
    for path in [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]:
        text, page = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        for match in _BLOCK.finditer(text):
            if match[2] in languages:
                line = text[: match.start()].count("\n") + 2
                found.append(Block(page, line, match[2], textwrap.dedent(match[3])))
    return found


def own_names(tree: ast.Module, known: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a block uses and neither it nor a block before it has made: ours by their names, else the reader's."""
    ours = {name: getattr(module, name) for module in map(importlib.import_module, PUBLIC) for name in module.__all__}
    given: dict[str, Any] = {"BASE_DIR": folder, "INSTALLED_APPS": [], "MIDDLEWARE": [], "DATABASES": {"default": {}}}
    missing = _used(tree) - set(known) - set(dir(builtins))
    return {name: given.get(name, ours.get(name, Anything())) for name in missing}


def _used(tree: ast.Module) -> set[str]:
    """The names that are read or changed, of those that the block does not make itself before."""
    made: set[str] = set()
    used: set[str] = set()
    changed: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.AugAssign(target=ast.Name(id=name)):
                changed.add(name)
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                made.add(name)
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                made.add(name)
            case ast.alias(name=name, asname=alias):
                made.add(alias or name.partition(".")[0])
    return (used - made) | changed
