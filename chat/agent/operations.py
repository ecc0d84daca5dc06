"""Operations on one conversation, shared by agents and handles, and their value types.

`chat.runtime` implements the operations on the database. Nothing here touches it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from chat.core.model.chosen_model import ChosenModel
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.session_facts import SessionFacts
from sessions_app.core.messages.shapes import Message, NewMessage
from sessions_app.core.messages.tree import Leaf
from thinkproject.kernel.jsonvalue import JSONObject

if TYPE_CHECKING:
    from tools_app.extensions.loaded import LoadedExtension

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


class ChatOperations(Protocol):
    """The operations on one conversation, as the methods of `Think` and `AgentHandle` call them."""

    async def run_turn(
        self,
        words: list[NewMessage] | MessageFunction | None,
        *,
        body: JSONObject | None = None,
        callback: Any = None,
        signal: asyncio.Event | None = None,
    ) -> SavedTurn:
        """Run a turn and wait for its end; without words it goes on from the last answer."""
        ...

    async def add_messages(
        self, messages: list[NewMessage], *, parent: str | Leaf | None, is_upsert: bool
    ) -> list[str]:
        """Store messages without a turn."""
        ...

    async def stop_turns(self, request_id: str | None, reason: str | None) -> bool:
        """Stop one turn by its request id, or all; false when there was nothing to stop."""
        ...

    async def has_pending_interaction(self) -> bool:
        """Whether a call of the active path waits for a person or a client."""
        ...

    async def wait_until_stable(self, timeout_seconds: float | None) -> bool:
        """Wait until nothing runs, waits or is pending; false when that takes longer."""
        ...

    async def compact(self, instructions: str) -> str:
        """Request a compaction, behind the turns that wait."""
        ...

    async def submit(self, messages: list[NewMessage], *, key: str | None, metadata: JSONObject) -> Submission:
        """Accept a submission, or return the existing one with this key."""
        ...

    async def find_submission(self, submission_id: str) -> Submission | None:
        """Read a submission of this conversation."""
        ...

    async def newest_submissions(self, limit: int) -> list[Submission]:
        """Read the newest submissions of this conversation."""
        ...

    async def cancel_submission(self, submission_id: str) -> bool:
        """Stop a submission of this conversation; false when it has ended or is unknown."""
        ...

    async def list_sessions(self) -> list[StoredSession]:
        """Read the histories, the most recently changed first; none before the first write."""
        ...

    async def create_session(self, name: str) -> StoredSession:
        """Make a history and make it current."""
        ...

    async def switch_session(self, session_id: str) -> None:
        """Make a history current."""
        ...

    async def rename_session(self, session_id: str, name: str) -> None:
        """Give a history a name."""
        ...

    async def delete_session(self, session_id: str) -> None:
        """Stop the turns of a history and remove it."""
        ...

    async def read_history(self, leaf_id: str | None) -> list[StoredMessage]:
        """Read the path to a message of the current history, or the active one."""
        ...

    async def count_messages(self) -> int:
        """Count the messages of the current history on all branches."""
        ...

    async def clear_messages(self) -> None:
        """Stop the turns of the current history and remove its messages."""
        ...

    async def load_model_choice(self) -> ChosenModel:
        """Read the stored choice of a model."""
        ...

    async def save_model_choice(self, choice: ChosenModel) -> None:
        """Check and store a choice of a model."""
        ...


class HookWatcher(Protocol):
    """Hears of the hooks of an agent after the agent itself. Never raises."""

    def watches(self, hook: str) -> bool:
        """Whether anything listens to this hook of the agent's class."""
        ...

    async def notify(self, hook: str, argument: Any) -> None:
        """Report that a hook was called, with its argument."""
        ...

    async def flush(self) -> None:
        """Report what was collected."""
        ...


@dataclass(slots=True)
class ExtensionState:
    """The extensions of one agent object, once they were looked up.

    `labels`: of the context blocks that they brought, each with the prefix of its extension.
    """

    loaded: "tuple[LoadedExtension, ...] | None" = None
    labels: Mapping[str, str] = field(default_factory=dict)
    watcher: HookWatcher | None = None


class ExtensionOperations(Protocol):
    """The operations on the extensions of one conversation, as the methods call them."""

    async def load(self, manifest: Any, source: str, *, via: str = "code", replaces: bool = False) -> JSONObject:
        """Load an extension for this conversation."""
        ...

    async def unload(self, name: str) -> bool:
        """Unload one; false where there is none."""
        ...

    async def list_all(self) -> list[JSONObject]:
        """All that the conversation has, in load order."""
        ...

    async def update(self, name: str, *, source: str | None = None, manifest: Any = None) -> JSONObject:
        """Write a new version."""
        ...
