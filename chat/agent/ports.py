"""What the methods of agents and handles need of a host: ports, and the values that pass through them.

`chat.runtime` implements them on the database. Nothing here touches it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.tree import Leaf
from thinkproject.kernel.jsonvalue import JSONObject

MessageInput: TypeAlias = str | JSONObject | Sequence[str | JSONObject]
"""A text, a UI message, or several of them."""

MessageFunction: TypeAlias = Callable[[list[JSONObject]], MessageInput | Awaitable[MessageInput]]
"""Gets the messages of now, oldest first; gives what is to be said. Sync or async."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTurn:
    """How a turn that code started ended. `status`: completed, aborted, skipped or error.

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


class TurnsPort(Protocol):
    """Turns of one conversation. `run` without words goes on from the last answer."""

    async def run(
        self,
        words: list[JSONObject] | MessageFunction | None,
        *,
        body: JSONObject | None = None,
        callback: Any = None,
        signal: asyncio.Event | None = None,
    ) -> SavedTurn:
        """Run a turn and wait for its end."""
        ...

    async def add(self, messages: list[JSONObject], *, parent: str | Leaf | None, is_upsert: bool) -> list[str]:
        """Store messages without a turn."""
        ...

    async def stop(self, request_id: str | None, reason: str | None) -> bool:
        """Stop one turn, or all of them."""
        ...

    async def has_pending_interaction(self) -> bool:
        """Whether a call waits for a person or a client."""
        ...

    async def wait_until_stable(self, timeout_seconds: float | None) -> bool:
        """Wait until nothing runs, waits or is pending."""
        ...

    async def compact(self, instructions: str) -> str:
        """Ask for a compaction, behind the turns that wait."""
        ...


class SubmissionsPort(Protocol):
    """Work that is handed in and not waited for."""

    async def submit(self, messages: list[JSONObject], *, key: str | None, metadata: JSONObject) -> Submission:
        """Accept, or find what was accepted under this key."""
        ...

    async def find(self, submission_id: str) -> Submission | None:
        """Read one."""
        ...

    async def newest(self, limit: int) -> list[Submission]:
        """Read the newest."""
        ...

    async def cancel(self, submission_id: str) -> bool:
        """Stop one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession:
    """A history inside an instance. `is_current`: the one that turns go to."""

    id: str
    name: str
    is_current: bool
    parent_id: str | None
    message_count: int  # of the shown path
    summary: str  # what it is about, for people; empty where nobody has written that
    created_at: datetime
    updated_at: datetime
    pinned_at: datetime | None
    archived_at: datetime | None
    model_name: str
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost: Decimal
    max_cost: Decimal | None
    auto_compaction: bool | None  # `None`: the agent and the site decide


class SessionsPort(Protocol):
    """The histories of one instance."""

    async def all(self) -> list[KeptSession]:
        """Read them, the most recently changed first."""
        ...

    async def create(self, name: str) -> KeptSession:
        """Make one and make it current."""
        ...

    async def switch(self, session_id: str) -> None:
        """Make one current."""
        ...

    async def rename(self, session_id: str, name: str) -> None:
        """Give one a name."""
        ...

    async def delete(self, session_id: str) -> None:
        """Stop its turns and remove it."""
        ...


class HistoryPort(Protocol):
    """The current history of one instance."""

    async def messages(self, leaf_id: str | None) -> list[StoredMessage]:
        """Read the path to a message, or the shown one."""
        ...

    async def count(self) -> int:
        """Count the messages of all branches."""
        ...

    async def clear(self) -> None:
        """Stop its turns and forget its messages."""
        ...


class HasPorts(Protocol):
    """What the verbs need of a host."""

    @property
    def sessions(self) -> SessionsPort:
        """Histories of this instance."""
        ...

    @property
    def history(self) -> HistoryPort:
        """The current one of them."""
        ...

    @property
    def turns(self) -> TurnsPort:
        """Turns of this conversation."""
        ...

    @property
    def submissions(self) -> SubmissionsPort:
        """Work that was handed in."""
        ...
