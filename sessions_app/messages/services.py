"""The only writers of conversations.

Every call is one transaction that first takes the session's row, so writers of one session come one after the other
on SQLite and PostgreSQL alike; what changed and the session carry the same new `change_seq`. A call that changes
nothing leaves the sequence alone. `after` says where in the tree: a message id, `Leaf.ACTIVE` for the end of the shown
path, or `None` for a new root.

Users' messages are insert-or-ignore by id (the first content wins), assistants' are insert-or-update.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from django.db import transaction

from sessions_app.core.compaction.pruning import merge_calls
from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import MessageRole, to_ui
from sessions_app.core.messages.oversized import Spill
from sessions_app.core.messages.parts import pending_calls
from sessions_app.core.messages.plain_text import storable
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import MessageInvalid, MessageNotFound, SessionNotFound
from sessions_app.messages.derived import forget_compactions, forget_summary
from sessions_app.messages.forks import take_along
from sessions_app.messages.selectors import count_path
from sessions_app.messages.usage import SessionUsage
from sessions_app.messages.writer import After, Placed, Writer, prepare, queueing, take_session, writing
from sessions_app.models import Message, Session
from thinkproject.kernel.append_only import erasing
from thinkproject.kernel.jsonvalue import dump, load
from thinkproject.kernel.phrases import Phrase

__all__ = [
    "Leaf",
    "append_here",
    "append_messages",
    "archive_beyond",
    "clear_session",
    "create_session",
    "delete_message",
    "delete_messages",
    "delete_session",
    "end_path_at",
    "fork_session",
    "freeze_prompt",
    "place_messages",
    "prune_outputs",
    "prune_unreached",
    "put_assistant",
    "queue_messages",
    "rename_session",
    "select_leaf",
    "set_auto_compaction",
    "update_message",
]

NAME_CHARS = 200
SOURCE_CHARS = 64


def create_session(
    *,
    owner_id: int | None = None,
    scope: str = "",
    name: str = "",
    parent_id: str | None = None,
    source: str = "",
    model_name: str = "",
) -> Session:
    """Make an empty session. `scope` and `source` are the caller's and opaque here; `parent_id` is a link, no fork."""
    return Session.objects.create(
        owner_id=owner_id,
        scope=scope,
        name=_clean_name(name),
        parent_id=parent_id,
        source=source[:SOURCE_CHARS],
        model_name=model_name[:NAME_CHARS],
    )


def rename_session(session_id: str, name: str) -> None:
    """Give a session a name, cut to 200 characters. **Errors:** `SessionNotFound`."""
    with writing(session_id) as writer:
        Session.objects.filter(pk=session_id).update(name=_clean_name(name))
        writer.changed = True


def set_auto_compaction(session_id: str, is_on: bool | None) -> None:
    """Turn a session's automatic compaction on or off; `None` leaves it to agent and site.

    **Errors:** `SessionNotFound`.
    """
    with writing(session_id) as writer:
        changed = Session.objects.filter(pk=session_id).exclude(auto_compaction=is_on)
        writer.changed = bool(changed.update(auto_compaction=is_on))


def queue_messages(
    session_id: str,
    messages: Sequence[shapes.Message],
    *,
    turn_id: str = "",
    author: str = "",
    spill: Spill | None = None,
) -> list[str]:
    """Accept messages without placing them; `place_messages` does that when their turn starts. Safe to repeat.

    `author`: of the person who wrote them, opaque here; empty for the owner of the session.
    Returns the ids of all of them in order, also of those that were there already (their stored content stays).
    **Errors:** `SessionNotFound`; `MessageInvalid`, also for a role other than user and system.
    """
    prepared = [prepare(message, spill) for message in messages]
    for message in prepared:
        if message["role"] == MessageRole.ASSISTANT:
            raise MessageInvalid("An assistant's message cannot be queued.")
    with queueing(session_id) as writer:
        for message in prepared:
            writer.insert_queued(message, turn_id, author)
    return list(dict.fromkeys(message["id"] for message in prepared))


LeftBehind: TypeAlias = Callable[[Mapping[str, str]], Sequence[str]]
"""Gets the turn of each other queued message by message id; gives the ids of those to place first."""


def place_messages(session_id: str, ids: Sequence[str], *, after: After) -> str | None:
    """Place queued messages into the tree as a chain, and make it the active path. Idempotent.

    Returns the message that an answer now hangs below. Messages that have a place already keep it: if all have, the
    last is returned and the shown path stays. Without ids nothing is placed: a named `after` becomes the shown leaf.
    **Errors:** `MessageNotFound` for an unknown id or `after`; then nothing is written.
    """
    return place_input(session_id, ids, after=after, left_behind=_none_left_behind).leaf_id


def place_input(session_id: str, ids: Sequence[str], *, after: After, left_behind: LeftBehind) -> Placed:
    """Do the same for a turn's input, and place before it what earlier turns left in the queue, at the shown end.

    Two statements for the session, and two for each message.
    """
    with transaction.atomic():
        writer = take_session(session_id, with_queue=True)
        waiting = {row.message_id: row for row in writer.queue}
        others = {row.message_id: row.turn_id for row in writer.queue if row.message_id not in ids}
        if others:
            _chain(writer, [waiting[message_id] for message_id in left_behind(others)], Leaf.ACTIVE)
        leaf = _place(writer, ids, waiting, after)
        writer.close()
        return Placed(None if leaf is None else leaf.message_id, writer.is_shown(leaf), writer.version)


def _none_left_behind(_others: Mapping[str, str]) -> Sequence[str]:
    return ()


def _place(writer: Writer, ids: Sequence[str], waiting: Mapping[str, Message], after: After) -> Message | None:
    if not ids:
        return _show(writer, after)
    known = dict(waiting)
    if any(message_id not in known for message_id in ids):
        known |= writer.find(message_id for message_id in ids if message_id not in known)
    for message_id in ids:
        if message_id not in known:
            raise MessageNotFound(Phrase("Message {id!r} is not in this session.", id=message_id))
    rows = [known[message_id] for message_id in dict.fromkeys(ids) if known[message_id].placed_at is None]
    return _chain(writer, rows, after) if rows else known[ids[-1]]


def _chain(writer: Writer, rows: Sequence[Message], after: After) -> Message | None:
    if not rows:
        return None
    parent = writer.position(after)
    for row in rows:
        writer.place(row, parent)
        parent = row
    writer.show(parent)
    return parent


def append_messages(
    session_id: str,
    messages: Sequence[shapes.Message],
    *,
    after: After = Leaf.ACTIVE,
    turn_id: str = "",
    shows: bool = True,
) -> list[str]:
    """Add messages to the tree as a chain, and make it the active path. Idempotent.

    With `shows=False` the shown path stays as it is.

    Returns the ids of all in order. One that is in the tree already keeps its place: of a user the content stays too,
    of an assistant it is replaced. **Errors:** `MessageNotFound` for an unknown `after`; `MessageInvalid`.
    """
    with transaction.atomic():
        return append_here(session_id, messages, after=after, turn_id=turn_id, shows=shows)


def append_here(
    session_id: str,
    messages: Sequence[shapes.Message],
    *,
    after: After = Leaf.ACTIVE,
    turn_id: str = "",
    shows: bool = True,
) -> list[str]:
    """Do the same inside the caller's transaction, which an error must undo. One new message costs four statements."""
    prepared = [prepare(message) for message in messages]
    writer = take_session(session_id)
    # A single one is mostly new, which its insert finds out by itself.
    known = writer.find(message["id"] for message in prepared) if len(prepared) > 1 else {}
    parent = shown = writer.position(after)
    for message in prepared:
        row = known.get(message["id"])
        if row is None:
            inserted = writer.insert(message, parent, turn_id)
            if inserted is not None:
                parent = known[message["id"]] = inserted
                continue
            row = writer.find([message["id"]])[message["id"]]
        if row.placed_at is None:
            writer.place(row, parent)
            parent = row
        elif message["role"] == MessageRole.ASSISTANT:
            _rewrite(writer, row, message)
    if shows and parent is not shown:
        writer.show(parent)
    writer.close()
    return list(dict.fromkeys(message["id"] for message in prepared))


def put_assistant(  # noqa: PLR0913 - one keyword for each thing a caller may decide
    session_id: str,
    message: shapes.Message,
    *,
    after: After,
    turn_id: str = "",
    usage: SessionUsage | None = None,
    model_name: str = "",
    find_after: Callable[[], After] | None = None,
) -> bool:
    """Store an assistant's message, new or again; a new one hangs below `after` and ends the shown path.

    Returns whether anything changed: not when the row holds the same already, nor for a message without parts, which
    is never stored. `usage` is added to the session's in any case. `find_after` is asked for the place
    where `after` does not end the shown path. **Errors:** `MessageNotFound` for an unknown `after`; `MessageInvalid`.
    """
    prepared = prepare(message)
    if prepared["role"] != MessageRole.ASSISTANT:
        raise MessageInvalid(
            Phrase("An assistant's message has the role 'assistant', not {role!r}.", role=prepared["role"])
        )
    if not prepared["parts"]:
        return False
    with writing(session_id) as writer:
        if find_after is not None and not (isinstance(after, str) and writer.ends_with(after)):
            after = find_after()
        row = _insert_answer(writer, prepared, after, turn_id)
        if row is None:
            is_changed = _rewrite(writer, writer.find([prepared["id"]])[prepared["id"]], prepared)
        else:
            writer.show(row)
            is_changed = True
        if usage is not None:
            writer.spend(usage, model_name)
    return is_changed


def _insert_answer(writer: Writer, message: shapes.Message, after: After, turn_id: str) -> Message | None:
    """Insert an assistant's message; nothing when it is there already, whatever `after` is by now."""
    try:
        return writer.insert(message, writer.position(after), turn_id)
    except MessageNotFound:
        if not writer.find([message["id"]]):
            raise
        return None


def update_message(
    session_id: str, message_id: str, change: Callable[[shapes.Message], shapes.Message | None]
) -> shapes.Message | None:
    """Read, modify and write one message under a lock. Returns the stored message, `None` if unchanged.

    `change` gets the UI message (a copy) and gives the new one, or `None`; id and role stay whatever it gives. In a
    fork a message that it shares with its origin becomes the fork's own first. **Errors:** `MessageNotFound`.
    """
    with writing(session_id) as writer:
        row = writer.find([message_id]).get(message_id)
        if row is None:
            raise MessageNotFound(Phrase("Message {id!r} is not in this session.", id=message_id))
        wanted = change(to_ui(row.message_id, row.role, load(dump(row.content))))
        if wanted is None:
            return None
        prepared = prepare({**wanted, "id": row.message_id, "role": row.role})
        return prepared if _rewrite(writer, row, prepared) else None


def select_leaf(session_id: str, message_id: str) -> str:
    """Show the branch of a message: the newest leaf below it (or itself) ends the path. Returns that leaf's id.

    **Errors:** `MessageNotFound` for a message that is unknown or has no place yet.
    """
    with writing(session_id) as writer:
        row = writer.placed(message_id)
        leaf = Message.objects.leaves_below(session_id, row.pk).only("message_id", "depth", "placed_at").first()
        chosen = leaf or row
        writer.show(chosen)
        return chosen.message_id


def end_path_at(session_id: str, message_id: str) -> tuple[str, str]:
    """Have a message end the shown path although others follow it; an empty id: show nothing. Nothing is deleted.

    Returns the ids of the messages that ended it before and end it now. **Errors:** `MessageNotFound`.
    """
    with writing(session_id) as writer:
        before = writer.position(Leaf.ACTIVE)
        writer.show(writer.placed(message_id) if message_id else None)
    return "" if before is None else before.message_id, message_id


def fork_session(session_id: str, message_id: str, *, name: str = "", scope: str | None = None) -> Session:
    """Make a session that goes on from a message of this one. Its path up to there is shared, not copied.

    A message with an open tool call is copied all the same: its answer in one session is none in the other. Compactions
    that lie on the shared path come along, and what the session remembers. **Errors:** `SessionNotFound`,
    `MessageNotFound`.
    """
    with writing(session_id) as writer:
        row = writer.placed(message_id, whole=True)
        origin = Session.objects.get(pk=session_id)
        fork = Session.objects.create(
            owner_id=origin.owner_id,
            scope=origin.scope if scope is None else scope,
            name=_clean_name(name or origin.name),
            parent=origin,
            forked_from=row,
            active_leaf=row,
            archived_depth=min(origin.archived_depth, row.depth),
            source=origin.source,
            model_name=origin.model_name,
            loaded_keys=origin.loaded_keys,
            max_cost=origin.max_cost,
            auto_compaction=origin.auto_compaction,
        )
        take_along(origin.pk, fork.pk, row)
    if pending_calls(to_ui(row.message_id, row.role, row.content)):
        with writing(fork.pk) as writer:
            writer.own(row)
        fork.refresh_from_db()
    return fork


def delete_message(session_id: str, message_id: str) -> None:
    """Delete one message; its children move up to its parent.

    **Errors:** `MessageNotFound`; `MessageShared` when a fork reaches it or, in a fork, when the origin owns it.
    """
    delete_messages(session_id, [message_id])


def delete_messages(session_id: str, ids: Sequence[str]) -> None:
    """Delete all of these messages or none; children move up to the deleted message's parent.

    Closing a gap costs a few statements for each of them and the rows below it.
    **Errors:** `MessageNotFound`; `MessageShared` when a fork reaches one or, in a fork, when the origin owns one.
    """
    with writing(session_id) as writer:
        found = writer.find(ids)
        for message_id in ids:
            if message_id not in found:
                raise MessageNotFound(Phrase("Message {id!r} is not in this session.", id=message_id))
        for row in found.values():
            row.refresh_from_db(fields=["parent", "depth", "placed_at"])  # the one before may have moved it
            if row.placed_at is not None:
                writer.take_out(row)
            Message.objects.filter(pk=row.pk).erase()
            writer.changed = True
        if found:
            forget_summary(session_id, keeps_own=True)


def clear_session(session_id: str) -> None:
    """Remove every message, queued ones and compactions too; the session stays, empty.

    What a fork reaches is kept for the fork.

    What was loaded and the kept prompt are forgotten as well; what is remembered in context blocks stays.
    **Errors:** `SessionNotFound`.
    """
    with erasing(whole=session_id), writing(session_id) as writer:
        session = Session.objects.filter(pk=session_id)
        fork_point = session.values_list("forked_from_id", flat=True).get()
        session.update(active_leaf=None, forked_from=None, archived_depth=0, system_prompt=None, loaded_keys=[])
        Message.objects.needed_by_others(session_id).update(session=None)
        Message.objects.filter(session_id=session_id).erase()
        forget_compactions(session_id)
        forget_summary(session_id)
        if fork_point is not None:
            Message.objects.unreached_above(fork_point).erase()
        writer.changed = True


def archive_beyond(session_id: str, limit: int) -> bool:
    """Archive the oldest messages of the shown path beyond so many. Returns whether any were. Safe to repeat.

    Archived messages are kept, but pages, windows and the model's history do not reach them. What stays begins at a
    user's message, so it may be less than the limit. **Errors:** `SessionNotFound`.
    """
    with writing(session_id) as writer:
        session = Session.objects.filter(pk=session_id)
        floor = session.values_list("archived_depth", flat=True).get()
        wanted = floor + count_path(session_id) - limit
        if wanted <= floor:
            return False
        kept = Message.objects.on_path(session_id, None, wanted).filter(role=MessageRole.USER, depth__gte=wanted)
        first = kept.order_by("depth").values_list("depth", flat=True).first()
        if first is None:
            return False
        writer.changed = bool(session.update(archived_depth=first))
    return True


def prune_outputs(session_id: str, calls: Mapping[str, Sequence[str]]) -> int:
    """Note that models are not sent the outputs of these calls any more. Returns how many messages. Safe to repeat.

    **Shape:** `calls`: ids of calls by message id. What is stored of a message stays, and clients see no change. A
    message that a fork shares with its origin is left alone: it is not the fork's. **Errors:** `SessionNotFound`.
    """
    if not calls:
        return 0
    with writing(session_id) as writer:
        rows = [row for row in writer.find(calls).values() if row.session_id == session_id]
        for row in rows:
            row.pruned_calls = merge_calls(row.pruned_calls, calls[row.message_id])
            row.change_seq = writer.change_seq - 1  # the last change: for paths that are kept, none for clients
        Message.objects.bulk_update(rows, ["pruned_calls", "change_seq"])
    return len(rows)


def freeze_prompt(session_id: str, text: str, *, replace: bool = False) -> str:
    """Store a session's system prompt, even an empty one, once. Returns the stored prompt.

    The first one wins, unless `replace`. Clearing the session forgets it. **Errors:** `SessionNotFound`.
    """
    session = Session.objects.filter(pk=session_id)
    (session if replace else session.filter(system_prompt__isnull=True)).update(system_prompt=text)
    kept = session.values_list("system_prompt", flat=True).first()
    if not isinstance(kept, str):
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
    return kept


@transaction.atomic
def delete_session(session_id: str) -> None:
    """Delete a session with its messages; messages shared by a fork are kept. **Errors:** `SessionNotFound`."""
    clear_session(session_id)
    Session.objects.filter(pk=session_id).delete()


@transaction.atomic
def prune_unreached(*, limit: int = 1000) -> int:
    """Delete messages whose session is gone and that no fork reaches, at most so many branches. Returns how many rows.

    Deleting a user removes sessions without asking this module; what they leave is found here.
    """
    return Message.objects.unreached(limit).erase()


def _show(writer: Writer, after: After) -> Message | None:
    row = writer.position(after)
    if row is not None and isinstance(after, str):
        writer.show(row)
    return row


def _rewrite(writer: Writer, row: Message, message: shapes.Message) -> bool:
    if row.role != message["role"]:
        raise MessageInvalid(Phrase("Message {id!r} is a message of role {role!r}.", id=row.message_id, role=row.role))
    return bool(message["parts"]) and writer.rewrite(row, message)


def _clean_name(name: str) -> str:
    return storable(name)[:NAME_CHARS]
