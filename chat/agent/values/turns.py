"""Values of conversations: what code sends, what becomes of it, and the histories of an instance. Pure."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from sessions_app.core.messages.session_facts import SessionFacts
from sessions_app.core.messages.shapes import Message, NewMessage
from thinkproject.kernel.jsonvalue import JSONObject

MessageInput: TypeAlias = str | NewMessage | Sequence[str | NewMessage]
"""A text, a UI message, or several of them."""


MessageFunction: TypeAlias = Callable[[list[Message]], MessageInput | Awaitable[MessageInput]]
"""Takes the current messages, oldest first; returns the messages to send. Sync or async."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTurn:
    """The outcome of a turn started by code. `status`: completed, aborted, skipped or error.

    `request_id` is empty where no turn was needed.
    """

    request_id: str
    status: str
    error: str | None = None


SKIPPED = SavedTurn(request_id="", status="skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Work that was handed in. `accepted`: false when the same key had been handed in before.

    `status`: pending, running, completed, aborted, skipped or error.
    """

    id: str
    request_id: str
    idempotency_key: str
    accepted: bool
    status: str
    metadata: JSONObject
    error: str | None
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession(SessionFacts):
    """A session of an instance. `is_current`: new turns go to it; `message_count`: of its active path."""

    is_current: bool
    message_count: int
