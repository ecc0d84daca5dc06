"""Settings of the apps: a default in code, an override in Django's settings, a declared environment variable.

    class ChatSettings:
        max_steps = Setting("THINK_MAX_STEPS", 10, doc="Model calls in one turn.")

Every declaration registers its name, so that an unknown `THINK_*` key is an error at start (`registry`). The value is
read at each access, so `override_settings` works.
"""

from typing import Any, Generic, TypeVar, overload

from django.conf import settings

T = TypeVar("T")

registry: dict[str, "Setting[Any]"] = {}
"""Name of the Django setting (and environment variable) to its declaration."""


class Setting(Generic[T]):
    """One documented setting. `name` is the Django setting and the environment variable (`THINK_…`)."""

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
        return value
