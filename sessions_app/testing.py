"""Conversations for tests, of this project and of projects that build on it. Everything goes through the services."""

from typing import Final

from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors, services
from sessions_app.models import Session
from thinkproject.kernel.ids import new_id

_ROLES: Final = {"u": MessageRole.USER, "a": MessageRole.ASSISTANT, "s": MessageRole.SYSTEM}


def text_message(role: str, text: str, message_id: str = "") -> Message:
    """Make a UI message of one text."""
    return {"id": message_id or new_id("msg"), "role": str(role), "parts": [{"type": "text", "text": text}]}


def history_of(*lines: str) -> list[Message]:
    """Make UI messages from lines like `"u: hi"`, `"a: hello"`, `"s: be brief"`; their ids are `u1`, `a2`, `s3`."""
    messages: list[Message] = []
    for number, line in enumerate(lines, 1):
        speaker, found, text = line.partition(":")
        if not found or speaker not in _ROLES:
            raise ValueError(f"A line begins with 'u:', 'a:' or 's:', unlike {line!r}.")
        messages.append(text_message(_ROLES[speaker], text.strip(), f"{speaker}{number}"))
    return messages


def make_session(*lines: str, owner_id: int | None = None, scope: str = "", name: str = "") -> Session:
    """Store a session, with the straight conversation of the lines in it (see `history_of`)."""
    session = services.create_session(owner_id=owner_id, scope=scope, name=name)
    if lines:
        services.append_messages(session.pk, history_of(*lines))
        session.refresh_from_db()
    return session


def make_message(
    session: Session,
    text: str = "hi",
    *,
    role: str = MessageRole.USER,
    after: str | Leaf | None = Leaf.ACTIVE,
    message_id: str = "",
    parts: list[Part] | None = None,
) -> StoredMessage:
    """Store one message in the tree and read it back."""
    message = text_message(role, text, message_id)
    if parts is not None:
        message["parts"] = parts
    [stored_id] = services.append_messages(session.pk, [message], after=after)
    stored = selectors.get_message(session.pk, stored_id)
    assert stored is not None
    return stored
