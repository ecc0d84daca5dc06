"""The inside of a write: the session's row taken, its next change number, and where new messages go.

Used by the services alone. Nothing here opens a transaction but `writing`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import MessageRole, is_message_id, message_ids, to_content, without_author
from sessions_app.core.messages.oversized import Spill, fit_row, sanitise
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import MessageInvalid, MessageNotFound, MessageShared, SessionNotFound
from sessions_app.messages.usage import SessionUsage, add_usage
from sessions_app.models import Message, Session
from sessions_app.search.indexing import index_messages, message_tags
from thinkproject.kernel.jsonvalue import byte_size, dump
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Columns, Insert, Statement, instant

After: TypeAlias = str | Leaf | None

_ARCHIVED: Final = F("archived_depth")
_PLACE: Final = ("message_id", "role", "parent_id", "depth", "placed_at", "session_id")


def prepare(message: shapes.Message, spill: Spill | None = None) -> shapes.Message:
    """Give a message as it is stored: known keys, provider scraps gone, small enough for a row.

    **Errors:** `MessageInvalid` for what cannot be stored.
    """
    if not is_message_id(message.get("id")):
        raise MessageInvalid(Phrase("A message needs a usable id, not {id!r:.80}.", id=message.get("id")))
    if message.get("role") not in set(MessageRole) or not isinstance(message.get("parts"), list):
        raise MessageInvalid(Phrase("Message {id!r} needs a role and a list of parts.", id=message["id"]))
    known: shapes.Message = {"id": message["id"], "role": message["role"], "parts": message["parts"]}
    if message.get("metadata") is not None:
        known["metadata"] = without_author(message["metadata"])
    try:
        return fit_row(sanitise(known), spill=spill)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageInvalid(
            Phrase("Message {id!r} cannot be stored as JSON: {error}", id=message["id"], error=error)
        ) from error


_SESSION_FACTS: Final = ("change_seq", "owner_id", "scope", "active_leaf_id", "archived_depth", "forked_from_id")
_SESSION: Final = Columns(Session, _SESSION_FACTS, prefix="s")
_LEAF: Final = Columns(Message, ("id", *_PLACE), prefix="m")
_MESSAGE: Final = Columns(Message, prefix="m")

_LOCK_SESSION: Final = Statement(
    """
    SELECT :session:, :leaf:, (SELECT b.change_seq FROM think_sessions_session b WHERE b.id = s.id)
    FROM think_sessions_session s
    LEFT JOIN think_sessions_message m ON m.id = s.active_leaf_id
    WHERE s.id = %s :lock_of_s:
    """,
    session=_SESSION,
    leaf=_LEAF,
)
_QUEUED: Final = Columns(Message, prefix="q")
_LOCK_WITH_QUEUE: Final = Statement(
    """
    SELECT :session:, :leaf:, :queued:, (SELECT b.change_seq FROM think_sessions_session b WHERE b.id = s.id)
    FROM think_sessions_session s
    LEFT JOIN think_sessions_message m ON m.id = s.active_leaf_id
    LEFT JOIN think_sessions_message q ON q.session_id = s.id AND q.placed_at IS NULL
    WHERE s.id = %s ORDER BY q.queued_position, q.id :lock_of_s:
    """,
    session=_SESSION,
    leaf=_LEAF,
    queued=_QUEUED,
)
_OWN_MESSAGES: Final = (
    "SELECT :message: FROM think_sessions_message m WHERE m.session_id = %s AND m.message_id IN (:ids:) ORDER BY m.id"
)
_INSERT: Final = Insert(
    Message,
    "session_id",
    "message_id",
    "parent_id",
    "depth",
    "role",
    "content",
    "byte_size",
    "turn_id",
    "author",
    "change_seq",
    "queued_position",
    "pruned_calls",
    "placed_at",
    "created_at",
    "updated_at",
    then="ON CONFLICT (message_id, session_id) DO NOTHING RETURNING id",
)
_PLACE_MESSAGE: Final = Statement(
    """
    UPDATE think_sessions_message
    SET parent_id = %s, depth = %s, placed_at = %s, queued_position = NULL, change_seq = %s, updated_at = %s
    WHERE id = %s
    """
)
_ADVANCE: Final = Statement(
    "UPDATE think_sessions_session AS s SET change_seq = change_seq + 1, updated_at = %s WHERE s.id = %s"
    " RETURNING :row:",
    row=Columns(Session, _SESSION_FACTS),
)
_STEP_BACK: Final = Statement("UPDATE think_sessions_session SET change_seq = change_seq - 1 WHERE id = %s")
_CLOSE: Final = Statement("UPDATE think_sessions_session SET change_seq = %s, updated_at = %s WHERE id = %s")
_SHOW: Final = Statement(
    # A leaf in the archive was asked for: then nothing is archived any more.
    """
    UPDATE think_sessions_session SET change_seq = %s, updated_at = %s, active_leaf_id = %s,
        archived_depth = CASE WHEN archived_depth > %s THEN 0 ELSE archived_depth END,
        input_tokens = input_tokens + %s, output_tokens = output_tokens + %s,
        reasoning_tokens = reasoning_tokens + %s, cached_tokens = cached_tokens + %s,
        cost = CAST(cost + CAST(%s AS NUMERIC) AS NUMERIC),
        model_name = CASE WHEN CAST(%s AS TEXT) = '' THEN model_name ELSE %s END
    WHERE id = %s
    """
)
_NOT_USED: Final = SessionUsage()


@dataclass(frozen=True, slots=True)
class Placed:
    """The message that an answer hangs below now, if there is any, and whether it ends the shown path.

    `version`: the number of the session's last change; nothing for a fork.
    """

    leaf_id: str | None
    is_shown: bool
    version: int | None


@contextmanager
def writing(session_id: str) -> Iterator["Writer"]:
    """Lock a session's row for one transaction. Only marked changes are written.

    **Errors:** `SessionNotFound`.
    """
    with transaction.atomic():
        writer = take_session(session_id)
        yield writer
        writer.close()


@contextmanager
def queueing(session_id: str) -> Iterator["Writer"]:
    """Lock a session's row for a transaction that is expected to change it: one statement does both.

    For messages without a place; the shown path is not read. **Errors:** `SessionNotFound`.
    """
    with transaction.atomic():
        row = _ADVANCE.one(instant(), session_id)
        if row is None:
            raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
        session = _SESSION.build(row)
        writer = Writer(session_id, session, None, change_seq=session.change_seq)
        yield writer
        if not writer.changed:
            _STEP_BACK.run(session_id)


def take_session(session_id: str, *, with_queue: bool = False) -> "Writer":
    """Lock a session's row inside the caller's transaction; `Writer.close` writes what was changed. One statement.

    On PostgreSQL the query locks the row. On SQLite transactions are IMMEDIATE: theirs is the one writer from the
    beginning. `with_queue`: `Writer.queue` has the messages without a place. **Errors:** `SessionNotFound`.
    """
    rows = (_LOCK_WITH_QUEUE if with_queue else _LOCK_SESSION).all(session_id)
    if not rows:
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    session, start = _SESSION.build(rows[0]), len(_SESSION) + len(_LEAF)
    if rows[0][-1] != session.change_seq:
        # PostgreSQL waited for the row: what it joined is of the time before, and so is the number in the last column.
        leaf = Message.objects.get(pk=session.active_leaf_id) if session.active_leaf_id is not None else None
        queue = list(Message.objects.queue_of(session_id)) if with_queue else []
    else:
        leaf = None if rows[0][len(_SESSION)] is None else _LEAF.build(rows[0][len(_SESSION) :])
        queue = [_QUEUED.build(row[start:]) for row in rows if with_queue and row[start] is not None]
    writer = Writer(session_id, session, leaf)
    writer.queue = queue
    return writer


class Writer:
    """One write of one session. `changed` must be true at the end if anything was written."""

    def __init__(self, session_id: str, session: Session, leaf: Message | None, change_seq: int | None = None) -> None:
        self.session_id = session_id
        self.change_seq = session.change_seq + 1 if change_seq is None else change_seq
        self.now: datetime = timezone.now()
        self.changed = False
        self.written: list[Message] = []  # for the index of the search
        self.queue: list[Message] = []  # messages without a place, in order, where they were asked for
        self._session = session
        self._leaf = leaf
        self._is_moved = False  # whether the leaf is another one than the session's row says
        self._usage: SessionUsage | None = None
        self._model_name = ""

    @property
    def version(self) -> int | None:
        """The number of the session's last change once this one is written; nothing for a fork."""
        if self._session.forked_from_id is not None:
            return None
        return self.change_seq if self.changed else self.change_seq - 1

    def close(self) -> None:
        """Write the session's part of the change: its number, its time, the end of the shown path."""
        if not self.changed:
            if self._usage is not None:
                add_usage(self.session_id, self._usage, model_name=self._model_name)
            return
        session, leaf = self._session, self._leaf
        if self.written:
            index_messages(self.written, message_tags(self.session_id, session.owner_id, session.scope))
        change = (self.change_seq, instant(self.now))
        if not self._is_moved:
            _CLOSE.run(*change, self.session_id)
            if self._usage is not None:
                add_usage(self.session_id, self._usage, model_name=self._model_name)
            return
        shown = (None, 0) if leaf is None else (leaf.pk, leaf.depth)
        used, name = self._usage or _NOT_USED, self._model_name[:200]
        tokens = (used.input_tokens, used.output_tokens, used.reasoning_tokens, used.cached_tokens)
        _SHOW.run(*change, *shown, *tokens, used.cost, name, name, self.session_id)

    def find(self, ids: Iterable[str]) -> dict[str, Message]:
        """Rows of messages that belong to the session, by message id."""
        wanted = message_ids(ids)
        if self._session.forked_from_id is not None:
            return {row.message_id: row for row in Message.objects.named(self.session_id, wanted)}
        if not wanted:
            return {}
        return {
            row.message_id: row for row in map(_MESSAGE.build, _own_messages(len(wanted)).all(self.session_id, *wanted))
        }

    def placed(self, message_id: str, *, whole: bool = False) -> Message:
        """Row of a message in the tree, without its content unless `whole`. **Errors:** `MessageNotFound`."""
        if self._leaf is not None and self._leaf.message_id == message_id and not whole:
            return self._leaf
        rows = Message.objects.named(self.session_id, message_ids([message_id]))
        row = (rows if whole else rows.only(*_PLACE)).first()
        if row is None or row.placed_at is None:
            raise MessageNotFound(Phrase("There is no message {id!r} in the tree of this session.", id=message_id))
        return row

    def position(self, after: After) -> Message | None:
        """Row below which new messages go; nothing for a new root. **Errors:** `MessageNotFound`."""
        if isinstance(after, Leaf):
            return self._leaf
        return None if after is None else self.placed(after)

    def insert_queued(self, message: shapes.Message, turn_id: str, author: str = "") -> bool:
        """Store a message without a place; false when the session has one of this id, which stays as it is."""
        if self._session.forked_from_id is not None and self.find([message["id"]]):
            return False
        return self._insert(message, turn_id, author=author, queued_position=self.change_seq) is not None

    def insert(self, message: shapes.Message, parent: Message | None, turn_id: str) -> Message | None:
        """Store a message below another, or as a root; nothing when the session has one of this id."""
        if self._session.forked_from_id is not None and self.find([message["id"]]):
            return None
        depth = 0 if parent is None else parent.depth + 1
        parent_id = None if parent is None else parent.pk
        return self._insert(message, turn_id, parent_id=parent_id, depth=depth, placed_at=self.now)

    def _insert(self, message: shapes.Message, turn_id: str, **place: Any) -> Message | None:
        text = dump(message)
        row = Message(
            session_id=self.session_id,
            message_id=message["id"],
            role=message["role"],
            content=to_content(message),
            byte_size=len(text.encode()),
            turn_id=turn_id,
            change_seq=self.change_seq,
            created_at=self.now,
            updated_at=self.now,
            **place,
        )
        inserted = _INSERT.one(row.__dict__)
        if inserted is None:
            return None
        self.changed = True
        row.pk = inserted[0]
        row._state.adding = False
        self.written.append(row)
        return row

    def place(self, row: Message, parent: Message | None) -> None:
        """Give a queued message its place."""
        row.parent_id = None if parent is None else parent.pk
        row.depth = 0 if parent is None else parent.depth + 1
        row.placed_at = row.updated_at = self.now
        row.queued_position = None
        row.change_seq = self.change_seq
        now = instant(self.now)
        _PLACE_MESSAGE.run(row.parent_id, row.depth, now, row.change_seq, now, row.pk)
        self.written.append(row)
        self.changed = True

    def ends_with(self, message_id: str) -> bool:
        """Whether the message of this id ends the shown path."""
        return self._leaf is not None and self._leaf.message_id == message_id

    def is_shown(self, row: Message | None) -> bool:
        """Whether a message ends the shown path."""
        return (None if row is None else row.pk) == (None if self._leaf is None else self._leaf.pk)

    def show(self, row: Message | None) -> None:
        """Make a message the end of the shown path."""
        if self.is_shown(row):
            return
        self._leaf = row
        self._is_moved = self.changed = True

    def spend(self, usage: "SessionUsage", model_name: str) -> None:
        """Add to the session's usage in this write. That alone is no change of the conversation."""
        self._usage, self._model_name = usage, model_name

    def rewrite(self, row: Message, message: shapes.Message) -> bool:
        """Replace a message's content; false when it is the same already. A shared row becomes the session's own."""
        content = to_content(message)
        if dump(content) == dump(row.content):
            return False
        if row.session_id != self.session_id:
            row = self.own(row)
        row.content = content
        row.byte_size = byte_size(message)
        row.change_seq = self.change_seq
        row.save(update_fields=["content", "byte_size", "change_seq", "updated_at"])
        self.written.append(row)
        self.changed = True
        return True

    def own(self, row: Message) -> Message:
        """Copy a shared message, and the shared ones below it, into this fork. Returns the copy."""
        shared = Message.objects.seen_by(self.session_id, row.depth).exclude(session_id=self.session_id)
        sessions = Session.objects.filter(pk=self.session_id)
        parent_id, copies = row.parent_id, []
        for old in list(shared.filter(depth__gte=row.depth).order_by("depth")):
            copy = Message(
                session_id=self.session_id,
                message_id=old.message_id,
                parent_id=parent_id,
                depth=old.depth,
                role=old.role,
                content=old.content,
                byte_size=old.byte_size,
                turn_id=old.turn_id,
                author=old.author,
                change_seq=self.change_seq,
                placed_at=old.placed_at,
            )
            copy.save()
            Message.objects.filter(session_id=self.session_id, parent=old).update(
                parent=copy, change_seq=self.change_seq
            )
            sessions.filter(active_leaf=old).update(active_leaf=copy)
            if self._leaf is not None and self._leaf.pk == old.pk:
                self._leaf = copy
            parent_id = copy.pk
            copies.append(copy)
        self.written += copies
        sessions.update(forked_from=row.parent_id)
        self.changed = True
        return copies[0]

    def take_out(self, row: Message) -> None:
        """Close the gap that a message leaves: its children move up. **Errors:** `MessageShared`."""
        subtree = Message.objects.subtree(row.pk)
        others = Session.objects.exclude(pk=self.session_id)
        if (
            subtree.exclude(session_id=self.session_id).exists()
            or row.session_id != self.session_id
            or others.filter(forked_from__in=subtree.values("pk")).exists()
        ):
            raise MessageShared(Phrase("Message {id!r} is shared with another session.", id=row.message_id))
        subtree.exclude(pk=row.pk).update(depth=F("depth") - 1, change_seq=self.change_seq)
        Message.objects.filter(parent=row).update(parent=row.parent_id, change_seq=self.change_seq)
        Session.objects.filter(active_leaf=row).update(active_leaf=row.parent_id)
        # What is shown stays so; where the first shown one goes, the one above it is shown instead.
        archives = Session.objects.filter(pk=self.session_id, archived_depth__gt=0, archived_depth__gte=row.depth)
        archives.update(archived_depth=_ARCHIVED - 1)
        Session.objects.filter(forked_from=row).update(forked_from=row.parent_id)


@lru_cache(maxsize=64)
def _own_messages(count: int) -> Statement:
    return Statement(_OWN_MESSAGES.replace(":ids:", ", ".join(["%s"] * count)), message=_MESSAGE)
