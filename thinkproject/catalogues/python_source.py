"""Sentences in Python: arguments of gettext's functions, phrases, and messages of errors that reach people."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from thinkproject.catalogues.entries import Entry, Loose, relative

PLAIN = frozenset({"gettext", "gettext_lazy", "gettext_noop", "_", "Phrase", "Refuse"})
PLURAL = frozenset({"ngettext", "ngettext_lazy"})
CONTEXT = frozenset({"pgettext", "pgettext_lazy"})
CONTEXT_PLURAL = frozenset({"npgettext", "npgettext_lazy"})
LOOKUPS = PLAIN | PLURAL | CONTEXT | CONTEXT_PLURAL

FOR_DEVELOPERS = frozenset(
    {
        # what a developer declared or returned
        "ToolDeclarationInvalid",
        "TurnConfigInvalid",
        "SchemaInvalid",
        "TokenCounterUnknown",
        "AgentCodeFailed",
        "NestedTurn",
        # what a client's program sent against the protocol
        "ChunkInvalid",
        "FrameInvalid",
        "CallRefused",
        # what models read
        "ToolError",
        # what ends inside the server
        "FiberError",
        "Fenced",
        "LogUnavailable",
        "Saturated",
        "CompactionFailed",
        # stored with its code, which the page words
        "ModelError",
        "TurnFailed",
        "TurnTimeout",
        # the Python client's
        "ClientError",
    }
)
"""Errors whose messages stay English, with what derives from them. Their codes are for everybody."""

LOOKS_UP = frozenset(
    {"thinkproject/kernel/errors.py", "thinkproject/kernel/languages.py", "thinkproject/web/languages.py"}
)
"""Modules that look up what they are given."""

_SEEN = {"messages": ("success", "error", "info", "warning"), "forms": ("ValidationError",)}
_SEEN_OPTIONS = frozenset({"label", "help_text", "verbose_name", "verbose_name_plural", "short_description"})
_SEEN_NAMES = frozenset({"short_description", "verbose_name", "verbose_name_plural", "site_header", "site_title"})


@dataclass
class Errors:
    """The error classes of the product by name: whose messages reach people, and whose do not."""

    people: set[str] = field(default_factory=set)
    developers: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, trees: Iterable[ast.Module]) -> "Errors":
        """Sort the classes of all modules, however they derive from each other."""
        bases: dict[str, set[str]] = {}
        for node in (node for tree in trees for node in ast.walk(tree)):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(_name(base) for base in node.bases)
        found = cls()
        todo = {"ThinkError"}
        while todo:
            name = todo.pop()
            parents = bases.get(name, set())
            if name in FOR_DEVELOPERS or parents & found.developers:
                found.developers.add(name)
                found.people.discard(name)
            else:
                found.people.add(name)
            known = found.people | found.developers
            todo |= {child for child, of in bases.items() if of & known and child not in known}
            todo |= {child for child, of in bases.items() if of & found.developers and child in found.people}
        return found

    def reaches_people(self, node: ast.ClassDef) -> bool:
        """Whether this class is such an error, and not a class of another kind with the name of one."""
        parents = {_name(base) for base in node.bases}
        return node.name in self.people and bool(parents & (self.people | {"Exception"}))


def entries_of(path: Path, errors: Errors) -> Iterator[Entry]:
    """The sentences of a module."""
    tree, place = parse(path), relative(path)
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and errors.reaches_people(node) and (text := ast.get_docstring(node)):
            yield Entry(text=inspect.cleandoc(text).splitlines()[0], place=place)
        elif isinstance(node, ast.Call):
            yield from _entries_of_call(node, errors, constants, place)


def _entries_of_call(node: ast.Call, errors: Errors, constants: dict[str, str], place: str) -> Iterator[Entry]:
    name = _name(node.func)
    words = [_literal(argument, constants) for argument in node.args]
    if name in PLAIN and words and words[0]:
        yield Entry(text=words[0], place=place)
    elif name in PLURAL and len(words) > 1 and words[0] and words[1]:
        yield Entry(text=words[0], plural=words[1], place=place)
    elif name in CONTEXT and len(words) > 1 and words[0] and words[1]:
        yield Entry(context=words[0], text=words[1], place=place)
    elif name in CONTEXT_PLURAL and len(words) > 2 and words[0] and words[1] and words[2]:
        yield Entry(context=words[0], text=words[1], plural=words[2], place=place)
    elif name in errors.people and words and words[0]:
        yield Entry(text=words[0], place=place)
    elif name == "problem" and len(words) > 2 and words[2]:
        yield Entry(text=words[2], place=place)


def loose_of(path: Path, errors: Errors) -> Iterator[Loose]:
    """Text of a module that people see and no catalogue can have."""
    tree, place = parse(path), relative(path)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Call):
            for text in _loose_of_call(node, errors, is_strict=place not in LOOKS_UP):
                yield Loose(place=f"{place}:{line}", text=text)
        elif isinstance(node, ast.Assign) and _is_text(node.value):
            for name in _SEEN_NAMES & {_name(target) for target in node.targets}:
                yield Loose(place=f"{place}:{line}", text=f"{name} outside of gettext_lazy")


def _loose_of_call(node: ast.Call, errors: Errors, *, is_strict: bool) -> Iterator[str]:
    name, owner = _name(node.func), _owner(node.func)
    first = node.args[0] if node.args else None
    if name in LOOKUPS and is_strict and first is not None and not isinstance(first, ast.Constant):
        yield f"{name}() takes a literal, with values beside it"
    if name in errors.people and first is not None and _is_made(first):
        yield f"the message of {name} has values in it: give it a Phrase"
    if name == "problem" and len(node.args) > 2 and _is_made(node.args[2]):
        yield "the detail of a problem has values in it: give it a Phrase"
    if name in _SEEN.get(owner, ()) and _is_text(node.args[1 if owner == "messages" else 0] if node.args else None):
        yield f"{owner}.{name}() outside of gettext"
    for option in node.keywords:
        is_column = option.arg == "description" and owner == "admin"
        if (option.arg in _SEEN_OPTIONS or is_column) and _is_text(option.value):
            yield f"{option.arg} outside of gettext_lazy"


def parse(path: Path) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _constants(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[target.id] = value.value
    return found


def _literal(node: ast.expr, constants: dict[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return constants.get(node.id, "") if isinstance(node, ast.Name) else ""


def _is_made(node: ast.expr) -> bool:
    """Whether a text is put together here: no catalogue has the result."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in {"format", "join"}
    return isinstance(node, ast.JoinedStr | ast.BinOp)


def _is_text(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and any(letter.isalpha() for letter in node.value)
    return node is not None and _is_made(node)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _owner(node: ast.expr) -> str:
    return _name(node.value) if isinstance(node, ast.Attribute) else ""
