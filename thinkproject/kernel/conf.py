"""Settings of the apps: a default in code, an override in Django's settings, a declared environment variable.

    class ChatSettings:
        max_steps = MachineLimit("THINK_MAX_STEPS", 10, doc="Model calls in one turn. Raise it for long work.")

Every declaration registers its name, so that an unknown `THINK_*` key is an error at start (`registry`). The value is
read at each access, so `override_settings` works. Where nothing depends on the installation, write a constant instead.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, overload

from django.conf import settings

T = TypeVar("T")

registry: dict[str, "Setting[Any]"] = {}
"""Name of the Django setting (and environment variable) to its declaration."""


class Setting(Generic[T]):
    """A choice of the site. `name` is the Django setting and the environment variable (`THINK_…`).

    Shape: `default` may be a frozen dataclass of numbers; owners give an object with some of its fields. The last
    sentence of `doc` says when to change it.
    """

    def __init__(self, name: str, default: T, *, doc: str) -> None:
        self.name = name
        self.default = default
        self.doc = doc
        registry[name] = self

    @overload
    def __get__(self, instance: None, owner: type) -> "T": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T:
        value: T = getattr(settings, self.name, self.default)
        return with_fields(self.name, self.default, value) if isinstance(value, Mapping) else value


class PeopleLimit(Setting[T]):
    """A limit that protects the site from one of its users, or from a stranger."""


class MachineLimit(Setting[T]):
    """A limit of what the work of the site takes: time, memory, connections, rows that are kept."""


def with_fields(name: str, default: T, given: Any) -> T:
    """The dataclass `default` with the numbers of an object; an object for any other default is returned as it is.

    Errors: `ValueError`, in words for the owner: a field that there is not, or a value that is no number above 0.
    """
    if not dataclasses.is_dataclass(default) or isinstance(default, type):
        return given
    kinds = {each.name: type(getattr(default, each.name)) for each in dataclasses.fields(default)}
    for key, value in given.items():
        if key not in kinds:
            raise ValueError(f"{name} has no {key!r}. It has {', '.join(kinds)}.")
        if isinstance(value, bool) or not isinstance(value, (int, kinds[key])) or not value > 0:
            kind = "a whole number" if kinds[key] is int else "a number"
            raise ValueError(f"{name} has {value!r} for {key!r}; expected {kind} above 0.")
    return dataclasses.replace(default, **given)
