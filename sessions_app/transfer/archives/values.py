"""Values of archives as they really are: texts that are no texts, times in seconds, milliseconds or words."""

import hashlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils.dateparse import parse_datetime

from sessions_app.core.messages.messages import is_message_id
from sessions_app.core.messages.shapes import Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

EARLIEST: Final = datetime(1990, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS: Final = 1e11
"""A larger number of seconds would be after the year 5000."""
HIDDEN_PART: Final = "data-hidden"
OTHER_PART: Final = "data-imported"


def text_of(value: JSONValue) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def object_of(value: JSONValue) -> JSONObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: JSONValue) -> list[JSONObject]:
    """The objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts_of(value: JSONValue) -> tuple[str, ...]:
    """The texts in a list."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def instant_of(value: JSONValue) -> datetime | None:
    """An instant from seconds, milliseconds or a text of ISO 8601; nothing for what is none, or out of all bounds."""
    found: datetime | None = None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        seconds = value / 1000 if abs(value) > _MILLISECONDS else value
        if abs(seconds) < _MILLISECONDS:
            found = _EPOCH + timedelta(seconds=seconds)
    elif isinstance(value, str):
        try:
            found = parse_datetime(value)
        except ValueError:
            return None
        if found is not None and found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
    try:
        return found if found is not None and EARLIEST <= found <= LATEST else None
    except OverflowError:  # at the limits of the calendar in another time zone
        return None


def fitting_id(value: str) -> str:
    """The id itself, or one made of it where it cannot be a message's."""
    if is_message_id(value):
        return value
    return f"msg_{hashlib.sha256(value.encode(errors='surrogatepass')).hexdigest()[:32]}"


def text_part(text: str) -> Part:
    """A part of text."""
    return {"type": "text", "text": text}


def reasoning_part(text: str) -> Part:
    """A part of reasoning, which has ended."""
    return {"type": "reasoning", "text": text, "state": "done"}


def call_part(tool: str, call_id: str, arguments: Any) -> Part:
    """A call of a tool whose result is not known yet. Arguments of models are objects."""
    return {
        "type": "dynamic-tool",
        "toolName": tool or "tool",
        "toolCallId": call_id,
        "state": "input-available",
        "input": arguments if isinstance(arguments, dict) else {"input": arguments},
    }


def settle(part: Part, output: Any, *, is_error: bool = False) -> None:
    """Give a call its result."""
    if is_error:
        part.update({"state": "output-error", "errorText": output if isinstance(output, str) else dump(output)})
    else:
        part.update({"state": "output-available", "output": output})


def hidden_part(role: str, text: str) -> Part:
    """Text that is kept, and neither shown nor sent to models."""
    return {"type": HIDDEN_PART, "data": {"role": role, "text": text}}


def other_part(value: JSONValue) -> Part:
    """Content of a kind that is not known, kept as it is."""
    return {"type": OTHER_PART, "data": value}
