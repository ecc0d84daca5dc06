"""A tool call, its outcome, and the transitions of its row."""

from dataclasses import dataclass
from enum import StrEnum

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load


class CallStatus(StrEnum):
    """The status of a tool call. Settled calls never change: the first result wins."""

    WAITING = "waiting"  # for a result from a client
    ASKED = "asked"  # for a person's decision
    APPROVED = "approved"  # not run yet
    EARLY = "early"  # a client has answered a call that its model is still saying
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"


SETTLED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.DENIED})
OPEN = frozenset({CallStatus.WAITING, CallStatus.ASKED, CallStatus.APPROVED})
"""Calls that wait for an answer from outside the turn, or that were approved and have not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a model. `input`: the parsed object."""

    call_id: str
    tool_name: str
    input: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The outcome of a call. With `is_error` the `output` is the text for the model, never an exception."""

    output: JSONValue
    is_error: bool = False
    duration_ms: int = 0
    reply: tuple[JSONObject, ...] = ()  # parts that the call adds to the assistant's reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """A preliminary output of a tool that yields; the next one, or the result, replaces it."""

    output: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPause:
    """The call is answered from outside: its turn ends without a result for it.

    Shape: `status` is `WAITING` (a client gives the result) or `ASKED` (a person decides, under `approval_id`).
    `question`: what the person is asked, in its stored form. Units: `expires_seconds` from now; `None` never expires.
    """

    status: CallStatus
    approval_id: str = ""
    expires_seconds: float | None = None
    question: JSONObject | None = None


def parse_input(arguments: str) -> JSONObject:
    """Read a model's argument text. No text means no arguments.

    Errors: `ValueError` whose message explains the fault in its JSON to the model.
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
