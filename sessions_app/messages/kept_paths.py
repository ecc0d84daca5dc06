"""Paths for models that stay in a process: read whole once, and then only what is new or was changed since.

A path is kept by the number of the session's last change, once the transaction that has read it is committed. The next
read asks in one statement for the rows that carry this number or a later one. Where none of them is another than it was
kept, and the parents of the new ones lead to a message that is kept, the path goes on from there; in any other case
it is read whole. So a path is never older than its session, also where other processes write in between.

Not kept: what shares messages with another session, whose changes carry that session's numbers, and what is longer
than a model is given. Turns share messages of plain texts; what has values inside, such as inputs of calls, each turn
gets as a copy, because hooks and tools read it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

from django.db import transaction

from sessions_app.core.compaction.compaction import SYNTHETIC_PREFIX
from sessions_app.core.compaction.pruning import as_sent
from sessions_app.core.messages.forms import FORM_BYTES, NO_FORMS, KeptForms
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.parts import is_pending
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from sessions_app.models import Compaction
from sessions_app.queries import COMPACTION_COUNT
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.statements import Statement

KEPT_BYTES: Final = 32 * 1024 * 1024
"""Bytes of all paths that a process keeps, as stored and with what was made of them; the one used longest ago goes
first. Parsed, what is stored takes about three times as much."""

KEPT_SECONDS: Final = 3_600
"""A path that no turn has used for so long goes as well, when another one is kept."""

MAX_NEW: Final = 100
"""Rows that are read besides a kept path; where there are more, it is read whole."""

_SINCE: Final = Statement(
    """
    SELECT :message:, s.active_leaf_id, m.id, :instant_of_m.created_at:, p.message_id, m.parent_id, (:compactions:),
        s.archived_depth
    FROM think_sessions_session s
    LEFT JOIN think_sessions_message m ON m.session_id = s.id AND m.change_seq >= %s
    LEFT JOIN think_sessions_message p ON p.id = m.parent_id
    WHERE s.id = %s ORDER BY m.depth LIMIT %s
    """,
    message=selectors.ROW,
    compactions=COMPACTION_COUNT,
)

_Summaries: TypeAlias = tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, kw_only=True)
class KeptPath:
    """A path, from where the archive ends, as it was at one change of its session.

    **Shape:** each tuple has one entry for a message, root first; of a summary the row and the bytes of the message
    that it ends with. `sent`: as models read it. `settled`: so many of the first messages have no open call. `nested`:
    the places of messages with values inside their parts. `forms`: of the other ones.
    """

    version: int
    messages: tuple[StoredMessage, ...]
    sent: tuple[Message, ...]
    rows: tuple[int, ...]
    byte_sizes: tuple[int, ...]
    floor: int
    summaries: _Summaries
    settled: int
    nested: tuple[int, ...]
    forms: KeptForms = field(default_factory=KeptForms)
    used_at: float = field(default_factory=time.monotonic)

    @cached_property
    def byte_count(self) -> int:
        """Bytes of all its rows, and of the forms of its messages."""
        return sum(self.byte_sizes) + FORM_BYTES * (len(self.sent) - len(self.nested))

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each row. A path goes on behind its last summary only, so those before it have none."""
        first = 1 + max((at for at, message in enumerate(self.messages) if _is_summary(message)), default=-1)
        return {row: at for at, row in enumerate(self.rows) if at >= first}

    def given(self) -> list[Message]:
        """The messages as models read them, for one turn."""
        found = list(self.sent)
        for at in self.nested:
            found[at] = _copied(found[at])
        return found

    def keep_forms(self) -> None:
        """Keep forms of the messages that turns share, from now on: of those behind the last one that has them."""
        nested = set(self.nested)
        for at in reversed(range(len(self.sent))):
            if self.forms.has(self.sent[at]):
                return
            if at not in nested:
                self.forms.keep(self.sent[at])

    @cached_property
    def has_pruned(self) -> bool:
        """Whether outputs are left out, which depends on the end of the path."""
        return any(message.pruned_calls for message in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPath:
    """A path that was read. `sent`: as models read it, a list of the caller's own. The others are a `KeptPath`'s."""

    messages: Sequence[StoredMessage]
    sent: list[Message]
    settled: int = 0
    forms: KeptForms = NO_FORMS


class KeptPaths:
    """The newest path of each session that a turn needed lately, for all threads of a process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, KeptPath] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def read(self, session_id: str, leaf: str | Leaf, *, version: int | None) -> ReadPath:
        """The history for a model, as `selectors.model_history` gives it. One statement where most of it is kept.

        For a transaction that holds the session's row. `version`: the number of its last change, or an earlier one;
        `None` for a fork, which is not kept. **Errors:** `MessageNotFound` for an unknown leaf.
        """
        kept = None if version is None else self._find(session_id)
        path = None if kept is None or version is None else _extended(session_id, kept, leaf, version)
        if path is None:
            messages, path = _read_whole(session_id, leaf, version)
            if path is None:
                return ReadPath(messages=messages, sent=as_sent(messages, session_id))
        found = path
        transaction.on_commit(lambda: self._keep(session_id, found))  # what is undone was never so
        return ReadPath(messages=found.messages, sent=found.given(), settled=found.settled, forms=found.forms)

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _find(self, session_id: str) -> KeptPath | None:
        with self._lock:
            path = self._kept.get(session_id)
            if path is not None:
                self._kept.move_to_end(session_id)
            return path

    def _keep(self, session_id: str, path: KeptPath) -> None:
        """Keep a path, unless one of a later change is kept; and let go what is too much."""
        with self._lock:
            known = self._kept.pop(session_id, None)
            if known is not None and known.version > path.version:
                path = known
            self._size += path.byte_count - (0 if known is None else known.byte_count)
            self._kept[session_id] = path
            path.keep_forms()
            while self._kept and (self._size > KEPT_BYTES or _is_old(next(iter(self._kept.values())))):
                _, oldest = self._kept.popitem(last=False)
                self._size -= oldest.byte_count


kept_paths: Final = KeptPaths()


def _is_old(path: KeptPath) -> bool:
    return time.monotonic() - path.used_at > KEPT_SECONDS


def _is_summary(message: StoredMessage) -> bool:
    return message.id.startswith(SYNTHETIC_PREFIX) and message.session_id is None


def _summaries(session_id: str) -> _Summaries:
    live = Compaction.objects.filter(session_id=session_id, undone_at=None)
    return tuple(live.order_by("created_at", "id").values_list("id", "first_id", "last_id", "summary"))


def _read_whole(session_id: str, leaf: str | Leaf, version: int | None) -> tuple[list[StoredMessage], KeptPath | None]:
    """The path, read from its rows, and what to keep of it: nothing of a fork, and of a path that is cut."""
    rows: list[int] = []
    byte_sizes: list[int] = []
    floors: list[int] = []

    def note(stretch: list[int], sizes: list[int], floor: int) -> None:
        rows[:0], byte_sizes[:0] = stretch, sizes
        floors.append(floor)

    messages, is_cut = selectors.compacted_tail(
        session_id, leaf, max_messages=selectors.HISTORY_MESSAGES, max_bytes=selectors.HISTORY_BYTES, note=note
    )
    if is_cut or version is None or not messages:
        return selectors.from_first_question(messages, is_cut), None
    summaries = _summaries(session_id) if any(map(_is_summary, messages)) else ()
    path = KeptPath(
        version=version,
        messages=tuple(messages),
        sent=tuple(as_sent(messages, session_id)),
        rows=tuple(rows),
        byte_sizes=tuple(byte_sizes),
        floor=floors[0],
        summaries=summaries,
        settled=_settled(messages, 0),
        nested=tuple(_nested(messages, 0)),
    )
    return messages, path


def _extended(session_id: str, kept: KeptPath, leaf: str | Leaf, version: int) -> KeptPath | None:
    """The path to a leaf, of what is kept and the rows written since; nothing where it has to be read whole."""
    found = _SINCE.all(session_id, kept.version, session_id, MAX_NEW + 1)
    if not found or len(found) > MAX_NEW or not _is_same_base(session_id, kept, *found[0][-2:]):
        return None
    active, written = found[0][-7], [row for row in found if row[-6] is not None]
    messages, byte_sizes = selectors.read_rows(written)
    new = {row[-6]: (message, size, row[-3]) for row, message, size in zip(written, messages, byte_sizes, strict=True)}
    if any(row in kept.places and kept.messages[kept.places[row]] != message for row, (message, _, _) in new.items()):
        return None
    row: Any = active if isinstance(leaf, Leaf) else _row_of(kept, new, leaf)
    added: list[int] = []
    while row in new and row not in kept.places:
        added.insert(0, row)
        row = new[row][2]
    if row not in kept.places:
        return None
    return _joined(session_id, kept, kept.places[row] + 1, [(each, *new[each][:2]) for each in added], version)


def _is_same_base(session_id: str, kept: KeptPath, summary_count: int, floor: int) -> bool:
    """Whether what stands above and in between is as it was: the archive, and the summaries."""
    if floor != kept.floor or bool(summary_count) != bool(kept.summaries):
        return False
    return not summary_count or _summaries(session_id) == kept.summaries


def _row_of(kept: KeptPath, new: Mapping[int, tuple[StoredMessage, int, int | None]], message_id: str) -> int | None:
    named = (row for row, (message, _, _) in new.items() if message.id == message_id and message.placed)
    known = (row for row, at in reversed(kept.places.items()) if kept.messages[at].id == message_id)
    return next(named, None) or next(known, None)


def _joined(
    session_id: str, kept: KeptPath, count: int, added: Sequence[tuple[int, StoredMessage, int]], version: int
) -> KeptPath | None:
    """The first messages of a path with others behind them; nothing where a model is given less than that."""
    messages = (*kept.messages[:count], *(message for _, message, _ in added))
    byte_sizes = (*kept.byte_sizes[:count], *(size for _, _, size in added))
    if len(messages) >= selectors.HISTORY_MESSAGES or sum(byte_sizes) >= selectors.HISTORY_BYTES:
        return None
    if kept.has_pruned or any(message.pruned_calls for _, message, _ in added):
        sent, forms = tuple(as_sent(messages, session_id)), KeptForms()
    else:  # one message reads as it did, whatever follows it
        sent = (*kept.sent[:count], *as_sent(messages[count - 1 :], session_id)[1:])
        forms = kept.forms if count == len(kept.messages) else KeptForms()  # which would keep what is on no path
    return KeptPath(
        version=version,
        messages=messages,
        sent=sent,
        rows=(*kept.rows[:count], *(row for row, _, _ in added)),
        byte_sizes=byte_sizes,
        floor=kept.floor,
        summaries=kept.summaries,
        settled=_settled(messages, min(kept.settled, count)),
        nested=(*(at for at in kept.nested if at < count), *_nested(messages, count)),
        forms=forms,
    )


def _settled(messages: Sequence[StoredMessage], count: int) -> int:
    """The number of first messages that have no call without a result; so many are known to have none."""
    while count < len(messages) and not any(map(is_pending, messages[count].parts)):
        count += 1
    return count


def _nested(messages: Sequence[StoredMessage], first: int) -> Iterator[int]:
    """The places, from one on, of messages with values inside their parts."""
    for at in range(first, len(messages)):
        if any(isinstance(value, dict | list) for part in messages[at].parts for value in part.values()):
            yield at


def _copied(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
