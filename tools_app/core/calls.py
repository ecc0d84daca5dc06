"""A tool call, how it ended, and what may happen to its row in between."""

from dataclasses import dataclass
from enum import StrEnum

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load


class CallStatus(StrEnum):
    """Where a tool call stands. Settled calls never change: the first result wins."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


SETTLED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a model. `input` is the parsed object as the model gave it."""

    call_id: str
    tool_name: str
    input: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a call ended. With `is_error` the `output` is the text the model sees; it is never an exception."""

    output: JSONValue
    is_error: bool = False
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """A preliminary output of a tool that yields; the next one, or the result, replaces it."""

    output: JSONValue


def parse_input(arguments: str) -> JSONObject:
    """Read a model's argument text. No text means no arguments.

    Errors: `ValueError` whose message tells the model what was wrong with its JSON.
    """
    text = arguments.strip()
    if not text:
        return {}
    try:
        value = load(text)
    except ValueError as error:
        raise ValueError(f"The arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"The arguments must be a JSON object, not {type(value).__name__}")
    return value
