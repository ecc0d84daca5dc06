"""A tool call, its outcome, and the transitions of its row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sessions_app.core.messages.shapes import OURS
from sessions_app.core.messages.shortening import shorten
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load
from tools_app.core.guard.rules import ORIGIN, SeenText, noted
from tools_app.core.tool_output import Media


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
    """The outcome of a call. With `is_error` the `output` is the text for the model, never an exception.

    `details`: what is known of it besides, as `details_of` makes it. `media`: not stored yet.
    """

    output: JSONValue
    is_error: bool = False
    duration_ms: int = 0
    details: JSONObject = field(default_factory=dict)
    media: tuple[Media, ...] = ()
    reply: tuple[JSONObject, ...] = ()  # parts that the call adds to the assistant's reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """A preliminary output of a tool that yields, or only what it reports. The next one, or the result, replaces it.

    `has_output`: false for a tool that has reported and given nothing yet.
    """

    output: JSONValue
    details: JSONObject = field(default_factory=dict)
    has_output: bool = True


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


MAX_TITLE_CHARS: Final = 200
MAX_METADATA_CHARS: Final = 16_000
"""Metadata beyond this are shortened in their shape: they are for a card, and travel with every report."""


def details_of(
    *,
    title: str = "",
    metadata: JSONObject | None = None,
    attachments: Sequence[JSONValue] = (),
    whole: JSONObject | None = None,
    is_interrupted: bool = False,
    origins: Sequence[SeenText] = (),
) -> JSONObject:
    """The facts of a call besides its output; only those there are.

    Shape: `title` and `metadata` of the tool, for people; `attachments`, files as `{url, mediaType, filename}`, or
    `{filename, error}` for one that was not kept; `whole` of an output that was cut, `{id, url, bytes, lines, next}`;
    `interrupted`; `origin`, the texts of others in the result as `{kind, source}`. Clients find it in the part, under
    `toolMetadata.think`.
    """
    made: JSONObject = {
        "title": " ".join(title.split())[:MAX_TITLE_CHARS],
        "metadata": None if metadata is None else shorten(metadata, MAX_METADATA_CHARS),
        "attachments": list(attachments),
        "whole": whole,
        "interrupted": is_interrupted,
        ORIGIN: [text.to_json() for text in noted(origins)],
    }
    return {key: value for key, value in made.items() if value}


def details_in(part: Mapping[str, object]) -> JSONObject:
    """The details that a tool part has; empty for one without."""
    given = part.get("toolMetadata")
    details = given.get(OURS) if isinstance(given, dict) else None
    return details if isinstance(details, dict) else {}


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
