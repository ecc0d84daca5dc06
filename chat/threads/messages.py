"""Messages of a thread in their flat form: `{id, role, content, reasoning?, createdAt}`. Pure.

`content` is the text of the message, or the summary of its call of `done` where it has none.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import NewMessage, Part
from thinkproject.kernel.jsonvalue import JSONObject

DONE: Final = "done"
"""Name of the tool that ends a run."""

ROLES: Final = ("user", "assistant")
"""Roles that a flat message may have."""


def milliseconds(at: datetime) -> int:
    """An instant as these frames write it."""
    return int(at.timestamp() * 1000)


def flat(message: StoredMessage) -> JSONObject:
    """The flat form of a stored message; `reasoning` only where there is some."""
    found: JSONObject = {
        "id": message.id,
        "role": message.role,
        "content": text_of_parts(message.parts, "text") or summary_of(message.parts),
        "createdAt": milliseconds(message.created_at),
    }
    reasoning = text_of_parts(message.parts, "reasoning")
    return {**found, "reasoning": reasoning} if reasoning else found


def from_flat(raw: JSONObject) -> NewMessage | None:
    """The message of a client, flat or with parts of its own; `None` for one that is neither, or of another role."""
    role, parts = raw.get("role", "user"), raw.get("parts")
    if role not in ROLES or not isinstance(raw.get("id", ""), str):
        return None
    if not isinstance(parts, list):
        content, reasoning = raw.get("content"), raw.get("reasoning")
        if not isinstance(content, str):
            return None
        parts = [{"type": "text", "text": content}]
        if isinstance(reasoning, str) and reasoning and role == "assistant":
            parts.insert(0, {"type": "reasoning", "text": reasoning})
    message: NewMessage = {"role": role, "parts": parts}
    return {**message, "id": raw["id"]} if raw.get("id") else message


def text_of_parts(parts: Iterable[Part], kind: str) -> str:
    """The texts of all parts of one type, `text` or `reasoning`, joined."""
    return "".join(str(part.get("text", "")) for part in parts if part["type"] == kind)


def summary_of(parts: Iterable[Part]) -> str:
    """The summary that the last call of `done` gave; empty without one."""
    found = ""
    for part in parts:
        given = part.get("input") if part["type"] == f"tool-{DONE}" else None
        if isinstance(given, dict) and isinstance(given.get("summary"), str):
            found = given["summary"]
    return found
