"""A value in words, for a developer who reads why it does not fit: its kind and size, never its content."""

import inspect
from collections.abc import Collection, Mapping
from typing import Any

NAMED_NUMBERS = (bool, int, float)


def described(value: Any) -> str:
    """Say what a value is: `None`, a number as it is, "an empty text", "a list of 3", "the class Desk", "a Thing"."""
    if value is None or isinstance(value, NAMED_NUMBERS):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    special = _unfinished(value)
    if special:
        return special
    if isinstance(value, str):
        return "a text" if value.strip() else "an empty text"
    name = type(value).__name__
    if inspect.isfunction(value) or inspect.ismethod(value) or inspect.isbuiltin(value):
        return f"the function {getattr(value, '__name__', name)}"
    if isinstance(value, Collection) and isinstance(value, list | tuple | set | frozenset | Mapping):
        return f"an empty {name}" if not value else f"{_article(name)} {name} of {len(value)}"
    return f"{_article(name)} {name}"


def _unfinished(value: Any) -> str:
    if inspect.iscoroutine(value):
        value.close()  # it is never awaited now, which is said here
        return "a coroutine that was not awaited"
    if inspect.isasyncgen(value) or inspect.isgenerator(value):
        return "a generator, of a method that yields"
    return ""


def _article(name: str) -> str:
    return "an" if name[:1].lower() in "aeiou" else "a"
