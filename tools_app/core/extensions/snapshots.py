"""Snapshots for the hooks of extensions: plain JSON of bounded depth and size, without what is not permitted.

An extension gets a copy, so nothing that it does to it reaches the turn. Without `messages: "read"` it learns that
something happened and not what was said; the system prompt is for those that may read all context.
"""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.extensions.manifest import ALL, Permissions

MAX_DEPTH: Final = 6
MAX_ITEMS: Final = 200
MAX_CHARS: Final = 20_000
CUT: Final = "[…]"

_OF_MESSAGES: Final = frozenset(
    {"body", "input", "output", "error", "text", "reasoning", "toolCalls", "toolResults", "chunk"}
)
"""Fields that quote what was said; of a call of the extension's own tools it may know them in any case."""
_OF_CALLS: Final = frozenset({"input", "output", "error"})


def snapshot(value: Any, *, depth: int = MAX_DEPTH) -> JSONValue:
    """A value as plain JSON, at most six levels deep. Functions are left out, exceptions are a name and a message."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - NaN
        case Enum():
            return snapshot(value.value, depth=depth)
        case str():
            return value[:MAX_CHARS]
        case BaseException():
            return {"name": type(value).__name__, "message": str(value)[:MAX_CHARS]}
        case BaseModel():
            return snapshot(value.model_dump(mode="json"), depth=depth)
        case Mapping() | list() | tuple() | set() | frozenset():
            return CUT if depth == 0 else _nested(value, depth - 1)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
            return snapshot(fields, depth=depth)
    return str(value)[:MAX_CHARS]


def _nested(value: Any, depth: int) -> JSONValue:
    if isinstance(value, Mapping):
        kept = [(key, item) for key, item in value.items() if not callable(item)][:MAX_ITEMS]
        return {str(key): snapshot(item, depth=depth) for key, item in kept}
    return [snapshot(item, depth=depth) for item in list(value)[:MAX_ITEMS] if not callable(item)]


def redacted(event: JSONObject, permissions: Permissions, own_tools: frozenset[str]) -> JSONObject:
    """The snapshot for one extension: without the fields that its permissions do not cover."""
    hidden = set() if permissions.messages == "read" else set(_OF_MESSAGES)
    if event.get("toolName") in own_tools:
        hidden -= _OF_CALLS
    if permissions.context.read != ALL:
        hidden.add("system")
    return {key: value for key, value in event.items() if key not in hidden}
