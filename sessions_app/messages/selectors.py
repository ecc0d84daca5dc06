"""Read conversations. Costs follow the result, not the history; no transaction is opened.

Values come out, never rows: `StoredMessage` carries the ids that clients know. In a fork the messages it shares with
its origin are found like its own.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from sessions_app.core.compaction.compaction import covered_range, summary_message
from sessions_app.core.messages.messages import MessageRole, StoredMessage, message_ids
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import MessageNotFound
from sessions_app.models import Compaction, Message, MessageQuerySet, Session
from sessions_app.queries import COMPACTION_COUNT, FLOOR, TAIL_TO_COMPACTION, PathBounds
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Columns, Statement, read_instant

MAX_PAGE: Final = 500
HISTORY_MESSAGES: Final = 2_000
HISTORY_BYTES: Final = 4_000_000
"""Given to a model at most."""

MAX_HISTORY: Final = 10_000  # messages that a program reads at a time
EXCHANGE_FACTOR: Final = 8  # how far the newest exchange alone may exceed a window's bytes
IDS_PER_QUERY: Final = 5000
MAX_PROBED: Final = 20

NoteStretch: TypeAlias = Callable[[list[int], list[int], int], None]
"""Gets of each stretch that is read its rows' ids, root first, the bytes of each, and the depth of the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPage:
    """A stretch of a path, root first. `leaf_id` is the end of the whole path that was asked for.

    `has_more`: more of it lies above; `has_newer`: more lies below.
    """

    messages: list[StoredMessage]
    has_more: bool
    leaf_id: str | None
    has_newer: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """The active path's end, and the session's change counter."""

    leaf_id: str | None
    change_seq: int


def get_message(session_id: str, message_id: str) -> StoredMessage | None:
    """One message by its id, or nothing."""
    return find_messages(session_id, [message_id]).get(message_id)


def find_messages(session_id: str, ids: Iterable[str]) -> dict[str, StoredMessage]:
    """Messages by their ids, in the order of the ids; unknown and impossible ones are left out. One query."""
    wanted = message_ids(ids)
    found: dict[str, StoredMessage] = {}
    for start in range(0, len(wanted), IDS_PER_QUERY):
        rows = Message.objects.named(session_id, wanted[start : start + IDS_PER_QUERY])
        found.update({message.id: message for message in _stored(rows)})
    return {message_id: found[message_id] for message_id in wanted if message_id in found}


def known_ids(session_id: str, ids: Iterable[str]) -> frozenset[str]:
    """The ids among these that a session has messages of. No query without ids, one where all are new everywhere."""
    wanted = message_ids(ids)
    if not wanted or (len(wanted) <= MAX_PROBED and _any_named(len(wanted)).one(*wanted) is None):
        return frozenset()
    return frozenset(find_messages(session_id, wanted))


@lru_cache(maxsize=MAX_PROBED)
def _any_named(count: int) -> Statement:
    marks = ", ".join(["%s"] * count)
    return Statement("SELECT 1 FROM think_sessions_message WHERE message_id IN (:marks:) LIMIT 1", marks=marks)


def path_page(
    session_id: str, *, leaf: str | Leaf | None = Leaf.ACTIVE, before: str | None = None, limit: int = 50
) -> PathPage:
    """The newest messages of a path, or those above the message `before`.

    **Shape:** at most 500 messages.
    **Errors:** `MessageNotFound` for an unknown leaf or `before`.
    """
    bounds = PathBounds(max_messages=min(max(limit, 1), MAX_PAGE))
    if leaf is None:
        return PathPage(messages=[], has_more=False, leaf_id=None)
    if before is None:
        messages, has_more = _stretch(_tail(session_id, leaf, bounds))
        return PathPage(messages=messages, has_more=has_more, leaf_id=messages[-1].id if messages else None)
    below: Any = _placed(session_id, before)
    leaf_id = below.active_leaf_id if isinstance(leaf, Leaf) else leaf
    if below.parent_id is None:
        return PathPage(messages=[], has_more=False, leaf_id=leaf_id, has_newer=True)
    messages, has_more = _stretch(Message.objects.tail(session_id, below.parent_id, bounds))
    return PathPage(messages=messages, has_more=has_more, leaf_id=leaf_id, has_newer=True)


def page_around(session_id: str, message_id: str, *, above: int, below: int) -> PathPage:
    """A message with so many above and below it: on the shown path, or on the newest branch below it.

    Costs the distance from the leaf, as `is_on_path` does. At most four queries.
    **Errors:** `MessageNotFound` for a message that is unknown or has no place yet.
    """
    row: Any = _placed(session_id, message_id)
    leaf_id = row.active_leaf_id
    lower = _lower(session_id, None, row, below)
    if not lower:
        leaf = Message.objects.leaves_below(session_id, row.pk).only("message_id").first() or row
        leaf_id = leaf.message_id
        lower = _lower(session_id, leaf.pk, row, below)
    upper: list[StoredMessage] = []
    has_more = row.parent_id is not None
    if has_more and above > 0:
        bounds = PathBounds(max_messages=min(above, MAX_PAGE))
        upper, has_more = _stretch(Message.objects.tail(session_id, row.parent_id, bounds))
    messages = [*upper, *lower[: below + 1]]
    return PathPage(messages=messages, has_more=has_more, leaf_id=leaf_id, has_newer=len(lower) > below + 1)


def window(session_id: str, *, max_messages: int = 500, max_bytes: int = 512 * 1024) -> list[StoredMessage]:
    """The transcript that clients get: the newest stretch of the shown path, then the queued messages in order.

    It starts at a user's message (or the root), so that no answer and no tool call stands without what led to it. The
    newest exchange is given whole even where it exceeds the bytes (up to eight times). Two queries.
    """
    # The queue first: a message that a turn places in between is then found twice. The other way round it would be
    # found nowhere, and clients replace what they show by what they get.
    waiting = queued(session_id)
    shown = _shown(session_id, window_bounds(max_messages, max_bytes))
    placed = {message.id for message in shown}
    return [*shown, *(message for message in waiting if message.id not in placed)]


def _shown(session_id: str, bounds: PathBounds) -> list[StoredMessage]:
    return from_first_question(*_stretch(_tail(session_id, Leaf.ACTIVE, bounds)))


def window_bounds(max_messages: int, max_bytes: int) -> PathBounds:
    """Limits of a window: the newest exchange may exceed the bytes."""
    return PathBounds(
        max_messages=max(max_messages, 1), max_bytes=max_bytes, exchange_bytes=max_bytes * EXCHANGE_FACTOR
    )


def model_history(
    session_id: str,
    *,
    leaf: str | Leaf | None = Leaf.ACTIVE,
    max_messages: int = HISTORY_MESSAGES,
    max_bytes: int = HISTORY_BYTES,
) -> list[StoredMessage]:
    """The newest stretch of a path for the model, root first; cut like a window.

    Where a compaction applies, one message with its summary (`core/compaction/compaction.py`) stands for those that it
    covers; they are not read and count for nothing. One query, two with a named leaf; four more where summaries apply.
    **Errors:** `MessageNotFound` for an unknown leaf.
    """
    if leaf is None:
        return []
    return from_first_question(*compacted_tail(session_id, leaf, max_messages=max_messages, max_bytes=max_bytes))


def compacted_tail(
    session_id: str, leaf: str | Leaf, *, max_messages: int, max_bytes: int, note: NoteStretch | None = None
) -> tuple[list[StoredMessage], bool]:
    """The same, not yet cut at a user's message, and whether more of the path lies above it."""
    row_id = None if isinstance(leaf, Leaf) else _placed(session_id, leaf).pk
    room = window_bounds(max_messages, max_bytes)
    read: list[StoredMessage] = []
    while True:
        found = _TAIL.all(
            *(session_id, row_id, session_id, session_id),
            *(room.max_messages, room.exchange_bytes, room.max_bytes),
            *(session_id, session_id),
        )
        if not found:
            return read, False
        stretch, byte_sizes = read_rows(found)
        row_id, compaction_count, floor = found[0][-3:]
        if note is not None:
            note([row[-6] for row in found], byte_sizes, floor)
        ending = _ending_at(session_id, stretch[0]) if compaction_count else []
        applying = _applying(session_id, ending, stretch[0])
        if applying is not None:
            stretch[0], row_id = applying
        read = stretch + read
        room = PathBounds(
            max_messages=room.max_messages - len(found),
            max_bytes=room.max_bytes - sum(byte_sizes),
            exchange_bytes=room.max_bytes,
        )
        is_cut = row_id is not None and stretch[0].depth > floor
        if not (ending and is_cut and room.max_messages > 0 and room.max_bytes > 0):
            return read, is_cut


ROW: Final = Columns(
    Message,
    (
        "message_id",
        "role",
        "content",
        "depth",
        "turn_id",
        "author",
        "queued_position",
        "change_seq",
        "session_id",
        "pruned_calls",
        "byte_size",
    ),
    prefix="m",
)
_TAIL: Final = Statement(
    # `MessageQuerySet.tail_to_compaction`, with the messages above: their ids and their rows.
    TAIL_TO_COMPACTION.replace(
        "SELECT id FROM path",
        """
        SELECT :message:, m.id, :instant_of_m.created_at:, p.message_id, m.parent_id, (:compactions:), (:floor:)
        FROM path JOIN think_sessions_message m ON m.id = path.id
        LEFT JOIN think_sessions_message p ON p.id = m.parent_id ORDER BY m.depth
        """,
    ),
    message=ROW,
    compactions=COMPACTION_COUNT,
    floor=FLOOR,
)


def read_rows(found: Sequence[tuple[Any, ...]]) -> tuple[list[StoredMessage], list[int]]:
    """The messages of rows as `_TAIL` gives them, and the bytes of each. No model objects: a history has thousands."""
    stretch: list[StoredMessage] = []
    byte_sizes: list[int] = []
    for values, row in zip(ROW.table(found), found, strict=True):
        message_id, role, content, depth, turn_id, author, queued_position, change_seq, *marks = values
        session_id, pruned, byte_size = marks
        created_at, parent_id = read_instant(row[-5]), row[-4]
        place = (parent_id, depth, turn_id, author, queued_position, created_at, change_seq, session_id, pruned)
        stretch.append(_message((message_id, role, content, *place)))
        byte_sizes.append(byte_size)
    return stretch, byte_sizes


def _ending_at(session_id: str, last: StoredMessage) -> list[Compaction]:
    ending = Compaction.objects.filter(session_id=session_id, last_id=last.id, undone_at=None)
    return list(ending.order_by("-created_at", "-id"))


def _applying(
    session_id: str, ending: Sequence[Compaction], last: StoredMessage
) -> tuple[StoredMessage, int | None] | None:
    """The newest of the compactions that applies, as it is read, and the row above the first message it covers.

    Its first message lies above its last one, as when it was made; one without its first message applies no more.
    """
    if not ending:
        return None
    # Known by its depth it costs no walk up a fork's shared path, which may be the whole history.
    depths = {row.first_id: last.depth + 1 - row.message_count for row in ending if row.message_count}
    firsts = _places(Message.objects.named_at(session_id, depths), last) if depths else {}
    missing = {compaction.first_id for compaction in ending} - firsts.keys()
    if missing:
        firsts |= _places(Message.objects.named(session_id, list(missing)), last)
    for compaction in ending:
        if compaction.first_id in firsts:
            row_id, parent_id, depth = firsts[compaction.first_id]
            return _synthetic(compaction, parent_id, depth), row_id
    return None


def _places(rows: MessageQuerySet, last: StoredMessage) -> dict[str, tuple[int | None, str | None, int]]:
    """By message id: its parent's row and id, and its depth; only for messages that have children."""
    above = rows.filter(placed_at__isnull=False, depth__lte=last.depth).order_by("depth", "pk")
    return {row[0]: row[1:] for row in above.values_list("message_id", "parent_id", "parent__message_id", "depth")}


def _synthetic(compaction: Compaction, parent_id: str | None, depth: int) -> StoredMessage:
    message = summary_message(compaction.to_overlay())
    return StoredMessage(
        id=message["id"],
        role=message["role"],
        parts=tuple(message["parts"]),
        metadata=message["metadata"],
        parent_id=parent_id,
        depth=depth,
        turn_id="",
        placed=True,
        queued_position=None,
        created_at=compaction.created_at,
        change_seq=0,
    )


def queued(session_id: str) -> list[StoredMessage]:
    """Accepted messages that no turn has placed yet, in order."""
    return _stored(Message.objects.queue_of(session_id))


def branches(session_id: str, message_id: str) -> list[StoredMessage]:
    """Direct answers to a message (its children), oldest first; none for an unknown message."""
    parent = Message.objects.named(session_id, message_ids([message_id])).only("depth").first()
    if parent is None:
        return []
    return _stored(Message.objects.seen_by(session_id, parent.depth).filter(parent=parent).order_by("pk"))


def answered(session_id: str, ids: Iterable[str]) -> set[str]:
    """Messages that have an assistant's answer below them in the session's tree. Two queries."""
    rows = list(Message.objects.named(session_id, message_ids(ids)).only(*_PLACE))
    if not rows:
        return set()
    seen = Message.objects.seen_by(session_id, min(row.depth for row in rows))
    answers = seen.filter(role=MessageRole.ASSISTANT, parent__in=[row.pk for row in rows])
    return set(answers.values_list("parent__message_id", flat=True))


def is_elsewhere(session_id: str, message_id: str) -> bool:
    """Whether the owner of a session has a message of this id in another session, and this session has none."""
    ids = message_ids([message_id])
    if not ids or Message.objects.named(session_id, ids).exists():
        return False
    owner = Session.objects.filter(pk=session_id, owner__isnull=False).values("owner_id")
    return Message.objects.filter(message_id__in=ids, session__owner__in=owner).exists()


def siblings(session_id: str, ids: Sequence[str]) -> dict[str, list[str]]:
    """For each message the ids of all that stand in its place, itself among them, oldest first. Two queries.

    Unknown and queued messages are left out.
    """
    targets = list(Message.objects.named(session_id, message_ids(ids)).filter(placed_at__isnull=False).only(*_PLACE))
    if not targets:
        return {}
    families: dict[int | None, list[str]] = {}
    for _, message_id, parent_id in sorted(_neighbours(session_id, targets)):
        families.setdefault(parent_id, []).append(message_id)
    return {row.message_id: families.get(row.parent_id, [row.message_id]) for row in targets}


def _neighbours(session_id: str, targets: Sequence[Message]) -> Iterable[tuple[int, str, int | None]]:
    """Row id, message id and parent of every message that stands where one of the targets does, in one query."""
    depths = [row.depth for row in targets]
    seen = Message.objects.seen_by(session_id, min(depths))
    found = [seen.filter(parent_id__in={row.parent_id for row in targets if row.parent_id is not None})]
    if any(row.parent_id is None for row in targets):
        shared = Message.objects.shared_with_origin(session_id, 0)
        found += [Message.objects.roots_of(session_id), shared.filter(parent__isnull=True)]
    first, *others = [rows.values_list("pk", "message_id", "parent_id") for rows in found]
    return first.union(*others)


def newest_leaf(session_id: str, message_id: str) -> str | None:
    """Id of the newest end below a message (itself when nothing is below), or nothing for one without a place.

    Costs what lies below the message.
    """
    row = Message.objects.named(session_id, message_ids([message_id])).only(*_PLACE).first()
    if row is None or row.placed_at is None:
        return None
    return Message.objects.leaves_below(session_id, row.pk).values_list("message_id", flat=True).first()


def is_on_path(session_id: str, message_id: str, leaf: str | Leaf = Leaf.ACTIVE) -> bool:
    """Whether a message lies on the path to a leaf. Costs the distance between the two."""
    row = Message.objects.named(session_id, message_ids([message_id])).only(*_PLACE).first()
    if row is None or row.placed_at is None:
        return False
    row_id = None if isinstance(leaf, Leaf) else _placed(session_id, leaf).pk
    return Message.objects.on_path(session_id, row_id, row.depth, row.depth).filter(pk=row.pk).exists()


def end_of_turn(session_id: str, turn_id: str, *, below: str | None, besides: str) -> str | None:
    """The parent of a turn's answer: the last message added by the turn below `below`, else `below`.

    `besides` is the answer. One query where nothing was added.
    """
    rows = Message.objects.filter(session_id=session_id, turn_id=turn_id, placed_at__isnull=False)
    last = rows.exclude(message_id=besides).order_by("-depth", "-pk").values_list("message_id", flat=True).first()
    if last is None or last == below:
        return below
    return last if below is None or is_on_path(session_id, below, last) else below


def count_path(session_id: str, leaf: str | Leaf = Leaf.ACTIVE) -> int:
    """Number of messages of a path, without archived ones. One row: the leaf stores its depth.

    **Errors:** `MessageNotFound` for an unknown leaf.
    """
    session = Session.objects.filter(pk=session_id)
    depth, floor = session.values_list("active_leaf__depth", "archived_depth").first() or (None, 0)
    if not isinstance(leaf, Leaf):
        depth = _placed(session_id, leaf).depth
    return 0 if depth is None else max(depth + 1 - floor, 0)


def leaf_id(session_id: str) -> str | None:
    """Id of the message that ends the shown path; nothing in an empty session. One query."""
    return shown(session_id).leaf_id


def shown(session_id: str) -> Shown:
    """The end of the shown path and the number of the last change; nothing and 0 of an unknown session. One query."""
    found = Session.objects.filter(pk=session_id).values_list("active_leaf__message_id", "change_seq").first()
    return Shown(*found) if found else Shown(None, 0)


def auto_compaction(session_id: str) -> bool | None:
    """Whether this session is summarised without being asked; nothing where others decide."""
    chosen: bool | None = Session.objects.filter(pk=session_id).values_list("auto_compaction", flat=True).first()
    return chosen


_PLACE: Final = ("message_id", "parent_id", "depth", "placed_at", "session_id")


def _tail(session_id: str, leaf: str | Leaf, bounds: PathBounds) -> MessageQuerySet:
    row_id = None if isinstance(leaf, Leaf) else _placed(session_id, leaf).pk
    return Message.objects.tail(session_id, row_id, bounds)


def _placed(session_id: str, message_id: str) -> Message:
    rows = Message.objects.named(session_id, message_ids([message_id])).with_active_leaf_of(session_id)
    row = rows.only(*_PLACE).first()
    if row is None or row.placed_at is None:
        raise MessageNotFound(Phrase("There is no message {id!r} in the tree of this session.", id=message_id))
    return row


def _lower(session_id: str, leaf_row_id: int | None, row: Message, below: int) -> list[StoredMessage]:
    """A message and up to one more than so many below it, on the path to a leaf; nothing where that path lacks it."""
    path = Message.objects.on_path(session_id, leaf_row_id, row.depth, row.depth + below + 1)
    found = _stored(path.order_by("depth"))
    return found if found and found[0].id == row.message_id else []


def from_first_question(messages: list[StoredMessage], has_more: bool) -> list[StoredMessage]:
    """Drop messages before the first user message or summary, unless the root is included or there is neither."""
    if not has_more:
        return messages
    for index, message in enumerate(messages):
        if message.role == MessageRole.USER or covered_range(message.to_ui()):
            return messages[index:]
    return messages


_STORED: Final = (
    "message_id",
    "role",
    "content",
    "parent__message_id",
    "depth",
    "turn_id",
    "author",
    "queued_position",
    "created_at",
    "change_seq",
    "session_id",
    "pruned_calls",
)


def _stretch(rows: MessageQuerySet) -> tuple[list[StoredMessage], bool]:
    """Messages of a tail, and whether more of the path lies above them."""
    found = list(rows.values_list(*_STORED, "floor"))
    messages = [_message(values[:-1]) for values in found]
    return messages, bool(found) and messages[0].depth > found[0][-1]


def _stored(rows: MessageQuerySet, limit: int | None = None) -> list[StoredMessage]:
    return [_message(values) for values in rows.values_list(*_STORED)[:limit]]


def _message(values: tuple[Any, ...]) -> StoredMessage:
    (message_id, role, content, parent_id, depth, turn_id, author, queued_position, created_at, *marks) = values
    change_seq, session_id, pruned_calls = marks
    return StoredMessage(
        id=message_id,
        role=role,
        parts=tuple(content["parts"]),
        metadata=content.get("metadata"),
        parent_id=parent_id,
        depth=depth,
        turn_id=turn_id,
        placed=queued_position is None,
        queued_position=queued_position,
        created_at=created_at,
        change_seq=change_seq,
        session_id=session_id,
        pruned_calls=tuple(pruned_calls),
        author=author,
    )
