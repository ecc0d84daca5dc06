"""The rules of an action: a tool with an effect that must not happen twice."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, fingerprint
from tools_app.errors import ToolInputInvalid

DAY_SECONDS: Final = 24 * 3600.0
MAX_PAUSE_SECONDS: Final = 30 * DAY_SECONDS
DEFAULT_ACTION_SECONDS: Final = 30.0
MAX_KEY_CHARS: Final = 200

Risk: TypeAlias = Literal["low", "medium", "high"]
"""How much is at stake, for the person who is asked."""

KeyRule: TypeAlias = str | tuple[str, ...] | Callable[[JSONObject], str | Awaitable[str | None] | None]
"""The key of a call: the argument or arguments of these names, or what a function makes of the input."""


class ActionStatus(StrEnum):
    """The status of an action's effect."""

    PENDING = "pending"  # begun; whether it happened is not known before it is settled
    SETTLED = "settled"  # it happened; the result is replayed
    FAILED = "failed"  # it did not happen; the key is free


class UndoStatus(StrEnum):
    """The status of a compensation; empty where it was never asked for."""

    NONE = ""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRules:
    """Declarations of `@action` besides those of a tool. `function` is the developer's own, without the ledger.

    Units: `timeout_seconds` of one run, `pause_seconds` until a question counts as denied (`None`: as for any tool).
    `undo` names a compensation. `context_parameter`: the parameter that gets the `ToolContext`, if there is one.
    """

    name: str
    function: Callable[..., Any]
    context_parameter: str | None = None
    key: KeyRule | None = None
    permissions: tuple[str, ...] = ()
    risk: Risk | None = None
    timeout_seconds: float = DEFAULT_ACTION_SECONDS
    pause_seconds: float | None = None
    undo: str = ""


def key_of_arguments(names: str | tuple[str, ...], arguments: JSONObject) -> str:
    """The key that arguments make: the text of one, or the JSON of several."""
    if isinstance(names, str):
        value: JSONValue = arguments.get(names)
        return value if isinstance(value, str) else dump(value)
    return dump([arguments.get(name) for name in names])


def checked_key(key: object) -> str:
    """A key as it is stored; a long one by its hash. Errors: `ToolInputInvalid` for an empty one."""
    text = str(key)
    if not text.strip():
        raise ToolInputInvalid("The idempotency key of this call is empty.")
    return text if len(text) <= MAX_KEY_CHARS else f"hash:{fingerprint(text)}"


def error_output(name: str, message: str) -> JSONObject:
    """The result of an action that did not succeed, as the model reads it."""
    return {"error": {"name": name, "message": message}}
