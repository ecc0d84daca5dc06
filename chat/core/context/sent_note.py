"""The line below a user's message that tells the model when it was sent, and where that is.

It stands with the message and not in the system prompt: what a provider keeps of a request stays valid, because the
line of a message is the same in each later request. Its facts are those of the stored message, so that an attempt that
begins again, on another day even, sends the same. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, cast

from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.zones import find_zone, zone_of_metadata

NOTE: Final = re.compile(r"\n*\[Sent [A-Z][a-z]+day \d{4}-\d\d-\d\d [^\]\n]*\]")
"""Matches the line with the empty one before it, for those that read a request as text."""

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def sent_note(message: Message) -> str:
    """The line of a message; empty for one without an instant (`sentAt`), as one that a hook has made up.

    The zone is that of the message's metadata. Without one the time is in UTC, and the line says that it is not known.
    """
    sent_at = message.get("sentAt")
    if not sent_at:
        return ""
    name = zone_of_metadata(message.get("metadata"))
    zone = find_zone(name) if name else None
    instant = datetime.fromisoformat(sent_at).astimezone(zone or UTC)
    day = f"{_DAYS[instant.weekday()]} {instant:%Y-%m-%d %H:%M}"
    if zone is None:
        return f"[Sent {day} UTC; the user's time zone is not known]"
    return f"[Sent {day} {name}, UTC{_offset(instant)}]"


def without_instants(history: Iterable[Message]) -> list[Message]:
    """The same messages for a model that is not to read when they were sent."""
    return [cast("Message", {key: value for key, value in each.items() if key != "sentAt"}) for each in history]


def latest_zone(history: Sequence[Message]) -> str:
    """The zone of the person in a conversation: of the newest message that has one; empty where none has."""
    named = (zone_of_metadata(message.get("metadata")) for message in reversed(history) if message["role"] == "user")
    return next(filter(None, named), "")


def _offset(instant: datetime) -> str:
    text = instant.strftime("%z")  # +0530; seconds are of times before 1972
    return f"{text[:3]}:{text[3:5]}"
