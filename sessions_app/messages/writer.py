"""The inside of a write: the session's row taken, its next change number, and where new messages go.

Used by the services alone. Nothing here opens a transaction but `writing`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, TypeAlias

from django.db import transaction
from django.db.models import Case, F, PositiveIntegerField, Value, When
from django.utils import timezone

from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import Role, is_message_id, message_ids, to_content
from sessions_app.core.messages.oversized import Spill, fit_row, sanitise
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import MessageInvalid, MessageNotFound, MessageShared, SessionNotFound
from sessions_app.models import Message, Session
from sessions_app.search.indexing import index_messages, message_tags
from thinkproject.kernel.jsonvalue import byte_size, dump

After: TypeAlias = str | Leaf | None

_ARCHIVED: Final = F("archived_depth")
_NOTHING: Final = Value(0, output_field=PositiveIntegerField())
_PLACE: Final = ("message_id", "role", "parent_id", "depth", "placed_at", "session_id")


def prepare(message: shapes.Message, spill: Spill | None = None) -> shapes.Message:
    """Give a message as it is stored: known keys, provider scraps gone, small enough for a row.

    **Errors:** `MessageInvalid` for what cannot be stored.
    """
    if not is_message_id(message.get("id")):
        raise MessageInvalid(f"A message needs a usable id, not {message.get('id')!r:.80}.")
    if message.get("role") not in set(Role) or not isinstance(message.get("parts"), list):
        raise MessageInvalid(f"Message {message['id']!r} needs a role and a list of parts.")
    known: shapes.Message = {"id": message["id"], "role": message["role"], "parts": message["parts"]}
    if message.get("metadata") is not None:
        known["metadata"] = message["metadata"]
    try:
        return fit_row(sanitise(known), spill=spill)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageInvalid(f"Message {message['id']!r} cannot be stored as JSON: {error}") from error


@contextmanager
def writing(session_id: str) -> Iterator["Writer"]:
    """Lock a session's row for one transaction. Only marked changes are written.

    **Errors:** `SessionNotFound`.
    """
    with transaction.atomic():
        sessions = Session.objects.filter(pk=session_id)
        # The update is the lock, on PostgreSQL and SQLite alike; reading first would let two writers pass.
        if not sessions.update(change_seq=F("change_seq") + 1):
            raise SessionNotFound(f"There is no session {session_id!r}.")
        change_seq, owner_id, scope = sessions.values_list("change_seq", "owner_id", "scope").get()
        writer = Writer(session_id, change_seq)
        yield writer
        if writer.changed:
            if writer.written:
                index_messages(writer.written, message_tags(session_id, owner_id, scope))
            sessions.update(updated_at=writer.now)
        else:
            sessions.update(change_seq=F("change_seq") - 1)


class Writer:
    """One write of one session. `changed` must be true at the end if anything was written."""

    def __init__(self, session_id: str, change_seq: int) -> None:
        self.session_id = session_id
        self.change_seq = change_seq
        self.now: datetime = timezone.now()
        self.changed = False
        self.written: list[Message] = []  # for the index of the search

    def find(self, ids: Iterable[str]) -> dict[str, Message]:
        """Rows of messages that belong to the session, by message id."""
        rows = Message.objects.named(self.session_id, message_ids(ids))
        return {row.message_id: row for row in rows}

    def placed(self, message_id: str, *, whole: bool = False) -> Message:
        """Row of a message in the tree, without its content unless `whole`. **Errors:** `MessageNotFound`."""
        rows = Message.objects.named(self.session_id, message_ids([message_id]))
        row = (rows if whole else rows.only(*_PLACE)).first()
        if row is None or row.placed_at is None:
            raise MessageNotFound(f"There is no message {message_id!r} in the tree of this session.")
        return row

    def position(self, after: After) -> Message | None:
        """Row below which new messages go; nothing for a new root. **Errors:** `MessageNotFound`."""
        if isinstance(after, Leaf):
            leaf = Session.objects.filter(pk=self.session_id).values("active_leaf_id")
            return Message.objects.filter(pk__in=leaf).only(*_PLACE).first()
        return None if after is None else self.placed(after)

    def insert_queued(self, message: shapes.Message, turn_id: str) -> Message:
        """Store a message without a place."""
        return self._insert(message, turn_id, queued_position=self.change_seq)

    def insert(self, message: shapes.Message, parent: Message | None, turn_id: str) -> Message:
        """Store a message below another, or as a root."""
        depth = 0 if parent is None else parent.depth + 1
        return self._insert(message, turn_id, parent=parent, depth=depth, placed_at=self.now)

    def _insert(self, message: shapes.Message, turn_id: str, **place: object) -> Message:
        self.changed = True
        row = Message.objects.create(
            session_id=self.session_id,
            message_id=message["id"],
            role=message["role"],
            content=to_content(message),
            byte_size=byte_size(message),
            turn_id=turn_id,
            change_seq=self.change_seq,
            **place,
        )
        self.written.append(row)
        return row

    def place(self, row: Message, parent: Message | None) -> None:
        """Give a queued message its place."""
        row.parent = parent
        row.depth = 0 if parent is None else parent.depth + 1
        row.placed_at = self.now
        row.queued_position = None
        row.change_seq = self.change_seq
        row.save(update_fields=["parent", "depth", "placed_at", "queued_position", "change_seq", "updated_at"])
        self.written.append(row)
        self.changed = True

    def show(self, row: Message | None) -> None:
        """Make a message the end of the shown path."""
        depth = 0 if row is None else row.depth
        moved = (
            Session.objects.filter(pk=self.session_id)
            .exclude(active_leaf=row)
            # A leaf in the archive was asked for: then nothing is archived any more.
            .update(
                active_leaf=row, archived_depth=Case(When(archived_depth__gt=depth, then=_NOTHING), default=_ARCHIVED)
            )
        )
        self.changed = self.changed or bool(moved)

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
                change_seq=self.change_seq,
                placed_at=old.placed_at,
            )
            copy.save()
            Message.objects.filter(session_id=self.session_id, parent=old).update(
                parent=copy, change_seq=self.change_seq
            )
            sessions.filter(active_leaf=old).update(active_leaf=copy)
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
            raise MessageShared(f"Message {row.message_id!r} is shared with another session.")
        subtree.exclude(pk=row.pk).update(depth=F("depth") - 1, change_seq=self.change_seq)
        Message.objects.filter(parent=row).update(parent=row.parent_id, change_seq=self.change_seq)
        Session.objects.filter(active_leaf=row).update(active_leaf=row.parent_id)
        # What is shown stays so; where the first shown one goes, the one above it is shown instead.
        archives = Session.objects.filter(pk=self.session_id, archived_depth__gt=0, archived_depth__gte=row.depth)
        archives.update(archived_depth=_ARCHIVED - 1)
        Session.objects.filter(forked_from=row).update(forked_from=row.parent_id)
