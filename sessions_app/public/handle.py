"""One session as code holds it: append, read, branch, fork, count. Needs no agent, no model and no worker.

    session = SessionManager(scope="support").create("A question")
    session.append("How do I reset it?")
    session.history()

Everything goes through the services and selectors; nothing is kept here but the id, so a handle stays valid whichever
process else writes. Synchronous: from async code call it through a thread.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias, cast

from sessions_app.compactions import services as compactions_services
from sessions_app.compactions import summaries
from sessions_app.compactions.services import CompactionView
from sessions_app.compactions.summaries import SummaryView
from sessions_app.context.diffs import SessionDiff, session_diff
from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.core.messages.shapes import Message, NewMessage
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.messages import selectors, sessions, usage
from sessions_app.messages import services as messages_services
from sessions_app.messages.selectors import PathPage
from sessions_app.messages.sessions import SessionInfo
from sessions_app.messages.usage import SessionUsage
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.phrases import Phrase

__all__ = ["SessionHandle", "SessionReader"]

MAX_HISTORY_BYTES: Final = 64 * 1024 * 1024
MAX_CONTEXT_MESSAGES: Final = 100

MessageInput: TypeAlias = str | NewMessage
"""A user's text, or a UI message."""


class SessionReader:
    """Read access to one session."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def info(self) -> SessionInfo:
        """The facts about it besides its messages."""
        return sessions.session_info(self.id)

    def history(self, leaf: str | Leaf = Leaf.ACTIVE) -> list[StoredMessage]:
        """The path to a leaf as a model reads it, root first: summaries replace compacted messages.

        The newest 10,000 messages or 64 MiB of it, beginning at a user's message.
        """
        return selectors.model_history(
            self.id, leaf=leaf, max_messages=selectors.MAX_HISTORY, max_bytes=MAX_HISTORY_BYTES
        )

    def page(self, leaf: str | Leaf = Leaf.ACTIVE, *, before: str | None = None, limit: int = 50) -> PathPage:
        """A page of the path to a leaf as it is stored, newest first to hand; at most 500 messages."""
        return selectors.path_page(self.id, leaf=leaf, before=before, limit=limit)

    def message(self, message_id: str) -> StoredMessage | None:
        """One message, or nothing."""
        return selectors.get_message(self.id, message_id)

    def leaf_id(self) -> str | None:
        """Id of the message that ends the shown path."""
        return selectors.leaf_id(self.id)

    def branches(self, message_id: str) -> list[StoredMessage]:
        """Direct answers to a message, oldest first."""
        return selectors.branches(self.id, message_id)

    def path_length(self, leaf: str | Leaf = Leaf.ACTIVE) -> int:
        """Number of messages of the path to a leaf. Costs one row, whatever the length."""
        return selectors.count_path(self.id, leaf)

    def message_count(self) -> int:
        """Number of messages on all branches."""
        return sessions.message_count(self.id)

    def needs_compaction(self, max_messages: int = MAX_CONTEXT_MESSAGES) -> bool:
        """Whether the shown path is longer than so many messages. Counts only."""
        return self.path_length() > max_messages

    def compactions(self) -> list[CompactionView]:
        """Active compactions of this session, oldest first."""
        return compactions_services.compactions(self.id)

    def summary(self) -> SummaryView | None:
        """The summary for people, in a few sentences; `None` until one is written."""
        return summaries.find_summary(self.id)

    def diff(self) -> SessionDiff:
        """The session's changes of memory: its own blocks, and its user's."""
        return session_diff(self.id)


class SessionHandle(SessionReader):
    """One session. Every method raises `SessionNotFound` or `MessageNotFound` for missing rows."""

    def append(self, message: MessageInput, *, parent: str | Leaf | None = Leaf.ACTIVE) -> str:
        """Add a message at the end of the shown path, below `parent`, or with `None` as a new root; returns its id.

        One that is there already keeps its place: of a user its content too, of an assistant it is replaced.
        """
        return self.append_all([message], parent=parent)

    def append_all(self, messages: Iterable[MessageInput], *, parent: str | Leaf | None = Leaf.ACTIVE) -> str:
        """Add messages as a chain; returns the last one's id."""
        ids = messages_services.append_messages(self.id, [_message(message) for message in messages], after=parent)
        return ids[-1] if ids else ""

    def upsert(self, message: NewMessage, *, parent: str | Leaf | None = Leaf.ACTIVE) -> str:
        """Add a message, or replace the content of the one with its id, of any role; never moved."""
        given = _message(message)
        if selectors.get_message(self.id, given["id"]) is None:
            return self.append(given, parent=parent)
        messages_services.update_message(self.id, given["id"], lambda _stored: given)
        return given["id"]

    def delete_messages(self, ids: Sequence[str]) -> None:
        """Delete all of these messages or none; children move up to the parent."""
        messages_services.delete_messages(self.id, ids)

    def clear(self) -> None:
        """Remove all messages and compactions; the session stays."""
        messages_services.clear_session(self.id)

    def select(self, message_id: str) -> str:
        """Show the branch of a message; returns the leaf that ends it."""
        return messages_services.select_leaf(self.id, message_id)

    def fork(self, message_id: str, name: str = "") -> "SessionHandle":
        """Fork this session at a message. Shared messages are stored once, and outlive either session."""
        return SessionHandle(messages_services.fork_session(self.id, message_id, name=name).pk)

    def split(self, summary: str, name: str = "") -> "SessionHandle":
        """End this session and continue in a new one that begins with its summary."""
        return SessionHandle(sessions.split_session(self.id, summary, name=name).pk)

    def rename(self, name: str) -> None:
        """Give it a name, cut to 200 characters."""
        messages_services.rename_session(self.id, name)

    def write_summary(self, text: str) -> SummaryView:
        """Replace the summary for people. `SummaryInvalid` for a blank text."""
        return summaries.write_summary(self.id, text)

    def add_compaction(self, summary: str, first_id: str, last_id: str) -> CompactionView:
        """Let a summary stand for the messages from the first to the last where models read them; none is changed.

        `CompactionInvalid` when the first does not lie above the last one, or the summary is blank.
        """
        return compactions_services.add_compaction(self.id, first_id=first_id, last_id=last_id, summary=summary)

    def add_usage(self, input_tokens: int, output_tokens: int, cost: Decimal | int | str = 0) -> None:
        """Add a model call's usage. Costs are exact: floats and negative numbers are refused."""
        if isinstance(cost, float) or min(input_tokens, output_tokens) < 0 or Decimal(cost) < 0:
            raise MessageInvalid("Usage is counted in numbers from 0 on, and a cost is a Decimal, not a float.")
        used = SessionUsage(input_tokens=input_tokens, output_tokens=output_tokens, cost=Decimal(cost))
        if not usage.add_usage(self.id, used):
            raise SessionNotFound(Phrase("There is no session {id!r}.", id=self.id))


def _message(message: MessageInput) -> Message:
    if isinstance(message, str):
        return {"id": new_id("msg"), "role": MessageRole.USER.value, "parts": [{"type": "text", "text": message}]}
    return cast("Message", {**message, "id": message.get("id") or new_id("msg")})
