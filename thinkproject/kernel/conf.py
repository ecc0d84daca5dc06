"""Settings of the apps: a default in code, an override in Django's settings, a declared environment variable.

    class ChatSettings:
        max_steps = MachineLimit("THINK_MAX_STEPS", 10)
        "Model calls in one turn. Raise it for long work."

Every declaration registers its name, so that an unknown `THINK_*` key is an error at start (`registry`). The value is
read at each access, so `override_settings` works. Where nothing depends on the installation, write a constant instead.
"""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Generic, TypeVar, overload

from django.conf import settings

T = TypeVar("T")

registry: dict[str, "Setting[Any]"] = {}
"""Name of the Django setting (and environment variable) to its declaration."""


class Setting(Generic[T]):
    """A choice of the site. `name` is the Django setting and the environment variable (`THINK_…`).

    Shape: `default` may be a frozen dataclass of numbers; owners give an object with some of its fields. The string
    below the declaration is for owners, and its last sentence says when to change the setting.
    """

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.default = default
        registry[name] = self

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.owner, self.attribute = owner, attribute

    @property
    def doc(self) -> str:
        """The string below the declaration, on one line. It is read from the source; empty where there is none."""
        return " ".join(_strings_below(self.owner).get(self.attribute, "").split())

    @overload
    def __get__(self, instance: None, owner: type) -> "T": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T:
        value: T = getattr(settings, self.name, self.default)
        if isinstance(value, Mapping) and dataclasses.is_dataclass(self.default):
            value = with_fields(self.name, self.default, value)
        return value


class PeopleLimit(Setting[T]):
    """A limit that protects the site from one of its users, or from a stranger."""


class MachineLimit(Setting[T]):
    """A limit of what the work of the site takes: time, memory, connections, rows that are kept."""


@lru_cache
def _strings_below(owner: type) -> dict[str, str]:
    body = getattr(ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0], "body", [])
    found: dict[str, str] = {}
    for node, below in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[target.id] = str(below.value.value)
    return found


def with_fields(name: str, default: Any, given: Mapping[str, Any]) -> Any:
    """The dataclass `default` with the numbers of an object.

    Errors: `ValueError`, in words for the owner: a field that there is not, or a value that is no number above 0.
    """
    kinds = {each.name: type(getattr(default, each.name)) for each in dataclasses.fields(default)}
    for key, value in given.items():
        if key not in kinds:
            raise ValueError(f"{name} has no {key!r}. It has {', '.join(kinds)}.")
        if isinstance(value, bool) or not isinstance(value, (int, kinds[key])) or not value > 0:
            kind = "a whole number" if kinds[key] is int else "a number"
            raise ValueError(f"{name} has {value!r} for {key!r}; expected {kind} above 0.")
    return dataclasses.replace(default, **given)
