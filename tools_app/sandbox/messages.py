"""The lines that a guest process says, read with distrust: the script shares its process with the runner.

A line is one of five messages, or it ends the run. Numbers, names and nesting are bounded here, sizes by the reader.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, is_nested_deeper, load
from tools_app.sandbox.contract import ConsoleLine, GuestError

MAX_NAME_CHARS: Final = 300
MAX_ERROR_CHARS: Final = 20_000
MAX_DEPTH: Final = 100
MAX_ID: Final = 2**53
LEVELS: Final = frozenset({"log", "info", "warn", "error", "debug"})


class Violation(Exception):
    """A guest said what no runner says."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The runner waits for its script."""


@dataclass(frozen=True, slots=True)
class Log:
    """A line of console output."""

    line: ConsoleLine


@dataclass(frozen=True, slots=True)
class Call:
    """A call for the host. `number` distinguishes it from the other calls of its run."""

    number: int
    name: str
    args: list[JSONValue]


@dataclass(frozen=True, slots=True)
class Done:
    """The script has ended, with a value or an error."""

    value: JSONValue = None
    error: GuestError | None = None


@dataclass(frozen=True, slots=True)
class Pong:
    """The script can do no more before it has an answer."""


Message: TypeAlias = Ready | Log | Call | Done | Pong


def read_message(line: bytes) -> Message:
    """Read one line. Errors: `Violation`, for whatever is not exactly a message."""
    try:
        message = load(line)
    except ValueError as error:
        raise Violation("not JSON") from error
    if not isinstance(message, dict) or is_nested_deeper(message, MAX_DEPTH):
        raise Violation("not an object, or nested too deeply")
    match message.get("t"):
        case "log":
            return Log(_console_line(message))
        case "call":
            return _call(message)
        case "done":
            return _done(message)
        case "ready":
            return Ready()
        case "pong":
            return Pong()
    raise Violation("an unknown kind of message")


def _console_line(message: JSONObject) -> ConsoleLine:
    level, text = message.get("level"), message.get("text")
    if level not in LEVELS or not isinstance(text, str):
        raise Violation("console output that is no text")
    return ConsoleLine(level=level, text=text)


def _call(message: JSONObject) -> Call:
    number, name, args = message.get("id"), message.get("name"), message.get("args")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < MAX_ID:
        raise Violation("a call without a number")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS or not isinstance(args, list):
        raise Violation("a call without a name or arguments")
    return Call(number, name, args)


def _done(message: JSONObject) -> Done:
    if message.get("ok") is True:
        return Done(value=message.get("value"))
    error = message.get("error")
    fields = error if isinstance(error, dict) else {}
    name, text, stack = (fields.get(key) for key in ("name", "message", "stack"))
    return Done(
        error=GuestError(
            name=_text(name, "Error")[:MAX_NAME_CHARS],
            message=_text(text, "The code failed without a message.")[:MAX_ERROR_CHARS],
            stack=_text(stack, "")[:MAX_ERROR_CHARS],
        )
    )


def _text(value: object, default: str) -> str:
    return value if isinstance(value, str) else default
