"""The names of people before their messages, as the model reads them where several write."""

from collections.abc import Sequence
from typing import Any, Final

from chat.members.selectors import names_of, user_key
from sessions_app.core.messages.shapes import AUTHOR, Message, Part

GONE: Final = "someone"
"""The name of an author whose account is gone."""


def author_in(message: Message) -> str:
    """The author of a message; empty for the owner of the conversation."""
    return str((message.get("metadata") or {}).get(AUTHOR, ""))


def with_names(history: Sequence[Message], owner_id: Any) -> list[Message]:
    """The history whose user messages begin with their author's name in brackets, where there are two or more authors.

    One query where there are, else none. The conversation as it is stored stays as it is.
    """
    authors = {author_in(message) for message in history if message["role"] == "user"}
    if len(authors) < 2:
        return list(history)
    known = names_of([owner_id, *(user_key(author) for author in authors)])
    names = {author: known.get(user_key(author) if author else owner_id, GONE) for author in authors}
    return [
        _begun_with(names[author_in(message)], message) if message["role"] == "user" else message for message in history
    ]


def _begun_with(name: str, message: Message) -> Message:
    parts: list[Part] = list(message["parts"])
    mark = f"[{' '.join(name.split())}]"
    at = next((index for index, part in enumerate(parts) if part.get("type") == "text"), None)
    if at is None:
        return {**message, "parts": [{"type": "text", "text": mark}, *parts]}
    parts[at] = {**parts[at], "text": f"{mark} {parts[at].get('text', '')}"}
    return {**message, "parts": parts}
