"""The walks over the tree of messages, in SQL that SQLite and PostgreSQL read alike.

A path is walked from its leaf upwards and stops as soon as the caller has enough: a page of a conversation costs the
page, whatever the history's length. Table names are written out: the app's label is part of the product.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import F, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

if TYPE_CHECKING:
    from sessions_app.models import Message  # noqa: F401 - named in the class below

NO_BOUND: Final = 2_000_000_000

# In the walks below what is asked of the next row names the walk too. A condition on that row alone tells SQLite, where
# it has statistics, that most rows fail: it then reads the whole table for a filter before the first step.

# Newest rows of a path, as far as it is not archived. Beyond `max_bytes` it goes on only for the newest exchange: until
# a user's message is in.
_TAIL: Final = """
WITH RECURSIVE path(id, parent_id, n, bytes, users, floor) AS (
    SELECT m.id, m.parent_id, 1, m.byte_size, CASE m.role WHEN 'user' THEN 1 ELSE 0 END, s.archived_depth
    FROM think_sessions_session s JOIN think_sessions_message m ON m.id = COALESCE(%s, s.active_leaf_id)
    WHERE s.id = %s AND m.depth >= s.archived_depth
    UNION ALL
    SELECT m.id, m.parent_id, path.n + 1, path.bytes + m.byte_size,
        path.users + CASE m.role WHEN 'user' THEN 1 ELSE 0 END, path.floor
    FROM path JOIN think_sessions_message m ON m.id = path.parent_id
    WHERE path.n < %s AND path.bytes + m.byte_size <= CASE path.users WHEN 0 THEN %s ELSE %s END
    AND m.depth >= path.floor
)
SELECT id FROM path
"""

# The same, but the walk ends at a message that ends a compaction: what that covers is not read.
_TAIL_TO_COMPACTION: Final = """
WITH RECURSIVE path(id, parent_id, n, bytes, users, floor, is_end) AS (
    SELECT m.id, m.parent_id, 1, m.byte_size, CASE m.role WHEN 'user' THEN 1 ELSE 0 END, s.archived_depth, :is_end:
    FROM think_sessions_session s JOIN think_sessions_message m ON m.id = COALESCE(%s, s.active_leaf_id)
    WHERE s.id = %s AND m.depth >= s.archived_depth
    UNION ALL
    SELECT m.id, m.parent_id, path.n + 1, path.bytes + m.byte_size,
        path.users + CASE m.role WHEN 'user' THEN 1 ELSE 0 END, path.floor, :is_end:
    FROM path JOIN think_sessions_message m ON m.id = path.parent_id
    WHERE path.is_end = 0 AND path.n < %s
    AND path.bytes + m.byte_size <= CASE path.users WHEN 0 THEN %s ELSE %s END
    AND m.depth >= path.floor
)
SELECT id FROM path
""".replace(
    ":is_end:",
    "(SELECT COUNT(*) FROM think_sessions_compaction c"
    " WHERE c.session_id = %s AND c.last_id = m.message_id AND c.undone_at IS NULL)",
)

# The path from a leaf up to a depth, and of it what lies no deeper than another one: the rest is walked, not read.
_CLIMB: Final = """
WITH RECURSIVE path(id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM think_sessions_message
    WHERE id = COALESCE(%s, (SELECT active_leaf_id FROM think_sessions_session WHERE id = %s))
    UNION ALL
    SELECT m.id, m.parent_id, m.depth
    FROM path JOIN think_sessions_message m ON m.id = path.parent_id
    WHERE path.depth > %s
)
SELECT id FROM path WHERE depth <= %s
"""

# What a fork shares with its origin, up to a depth. Of a session that is no fork: nothing.
_SHARED: Final = """
WITH RECURSIVE shared(id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM think_sessions_message
    WHERE id = (SELECT forked_from_id FROM think_sessions_session WHERE id = %s)
    UNION ALL
    SELECT m.id, m.parent_id, m.depth
    FROM shared JOIN think_sessions_message m ON m.id = shared.parent_id
    WHERE shared.depth > :floor:
)
SELECT id FROM shared
"""
_FORKED_SESSION: Final = """
SELECT COALESCE(f.session_id, '-')
FROM think_sessions_session s JOIN think_sessions_message f ON f.id = s.forked_from_id WHERE s.id = %s
"""
_FORKED_DEPTH: Final = """
SELECT f.depth FROM think_sessions_session s JOIN think_sessions_message f ON f.id = s.forked_from_id WHERE s.id = %s
"""
_LOWEST_OF_IDS: Final = "(SELECT MIN(depth) FROM think_sessions_message WHERE message_id IN (:ids:))"

_ACTIVE_LEAF: Final = """
SELECT leaf.message_id FROM think_sessions_session s JOIN think_sessions_message leaf ON leaf.id = s.active_leaf_id
WHERE s.id = %s
"""

_FLOOR: Final = "SELECT archived_depth FROM think_sessions_session WHERE id = %s"
_COMPACTION_COUNT: Final = "SELECT COUNT(*) FROM think_sessions_compaction WHERE session_id = %s AND undone_at IS NULL"

# Ends of the branches below a message, as one session sees the tree. COALESCE keeps SQLite from looking a row up by
# its session, which is a walk through the whole history.
_LEAVES_BELOW: Final = """
WITH RECURSIVE shared(id, parent_id) AS (
    SELECT id, parent_id FROM think_sessions_message
    WHERE id = (SELECT forked_from_id FROM think_sessions_session WHERE id = %s)
    UNION ALL
    SELECT m.id, m.parent_id FROM shared JOIN think_sessions_message m ON m.id = shared.parent_id
),
below(id, parent_id, seen_by) AS (
    SELECT m.id, m.parent_id, s.id
    FROM think_sessions_session s JOIN think_sessions_message m ON m.id = %s WHERE s.id = %s
    UNION ALL
    SELECT m.id, m.parent_id, below.seen_by FROM below JOIN think_sessions_message m ON m.parent_id = below.id
    WHERE COALESCE(m.session_id, '') = below.seen_by OR m.id IN (SELECT id FROM shared)
)
SELECT id FROM below WHERE id NOT IN (SELECT parent_id FROM below WHERE id <> %s)
"""

_SUBTREE: Final = """
WITH RECURSIVE below(id) AS (
    SELECT id FROM think_sessions_message WHERE id = %s
    UNION ALL
    SELECT m.id FROM below JOIN think_sessions_message m ON m.parent_id = below.id
)
SELECT id FROM below
"""

# Rows of a session that another session still needs: what hangs below them or is forked from them, up to their roots.
# Here and below, the way up is written as one look-up a row: where many branches start, PostgreSQL would join the
# whole table at every step.
_KEPT: Final = """
WITH RECURSIVE kept(id, parent_id) AS (
    SELECT m.id, m.parent_id FROM think_sessions_message m
    WHERE m.session_id = %s AND (
        EXISTS (
            SELECT 1 FROM think_sessions_message c
            WHERE c.parent_id = m.id AND (c.session_id IS NULL OR c.session_id <> m.session_id)
        )
        OR EXISTS (SELECT 1 FROM think_sessions_session s WHERE s.forked_from_id = m.id AND s.id <> m.session_id)
        OR EXISTS (SELECT 1 FROM think_sessions_session s WHERE s.active_leaf_id = m.id AND s.id <> m.session_id)
    )
    UNION
    SELECT kept.parent_id, (SELECT m.parent_id FROM think_sessions_message m WHERE m.id = kept.parent_id)
    FROM kept
    WHERE (SELECT m.session_id FROM think_sessions_message m WHERE m.id = kept.parent_id) = %s
)
SELECT id FROM kept
"""

# Rows of the sessions of some scopes that other sessions reach as forks: what stays when the former go. A fork of a
# fork comes upon them through the fork, or through rows whose session is gone.
_STAYING: Final = """
WITH RECURSIVE going(id) AS (
    SELECT id FROM think_sessions_session WHERE scope IN (:scopes:)
),
reached(id, parent_id) AS (
    SELECT m.id, m.parent_id
    FROM think_sessions_session s JOIN think_sessions_message m ON m.id = s.forked_from_id
    WHERE s.id NOT IN (SELECT id FROM going) AND (m.session_id IS NULL OR m.session_id IN (SELECT id FROM going))
    UNION
    SELECT reached.parent_id, (SELECT m.parent_id FROM think_sessions_message m WHERE m.id = reached.parent_id)
    FROM reached WHERE reached.parent_id IS NOT NULL
)
SELECT m.id FROM reached JOIN think_sessions_message m ON m.id = reached.id
WHERE m.session_id IN (SELECT id FROM going)
"""

# Chains of rows without a session that nothing needs any more, each from its end upwards.
_UNREACHED: Final = """
WITH RECURSIVE garbage(id, parent_id) AS (
    SELECT id, parent_id FROM (
        SELECT m.id, m.parent_id FROM think_sessions_message m
        WHERE m.session_id IS NULL AND :start:
        AND (SELECT MIN(c.id) FROM think_sessions_message c WHERE c.parent_id = m.id) IS NULL
        AND (SELECT MIN(s.id) FROM think_sessions_session s WHERE s.forked_from_id = m.id) IS NULL
        AND (SELECT MIN(s.id) FROM think_sessions_session s WHERE s.active_leaf_id = m.id) IS NULL
        LIMIT %s
    ) ends
    UNION ALL
    SELECT garbage.parent_id, (SELECT m.parent_id FROM think_sessions_message m WHERE m.id = garbage.parent_id)
    FROM garbage
    WHERE garbage.parent_id IS NOT NULL
    AND (SELECT m.session_id FROM think_sessions_message m WHERE m.id = garbage.parent_id) IS NULL
    AND (
        SELECT MIN(c.id) FROM think_sessions_message c WHERE c.parent_id = garbage.parent_id AND c.id <> garbage.id
    ) IS NULL
    AND (SELECT MIN(s.id) FROM think_sessions_session s WHERE s.forked_from_id = garbage.parent_id) IS NULL
    AND (SELECT MIN(s.id) FROM think_sessions_session s WHERE s.active_leaf_id = garbage.parent_id) IS NULL
)
SELECT id FROM garbage
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of a path is read. The newest exchange may use `exchange_bytes`; the newest message is always read."""

    max_messages: int
    max_bytes: int = NO_BOUND
    exchange_bytes: int = NO_BOUND


def _rows(sql: str, params: tuple[str | int | None, ...]) -> RawSQL:
    return RawSQL(sql, params)  # noqa: S611 - the texts above are constants, every value is a parameter


def _own(session_id: str) -> Exact:
    """Compare the session in a way that no index serves: rows are looked up by what is rarer (an id, a parent)."""
    return Exact(Coalesce(F("session_id"), Value("")), session_id)


def _own_of(session: RawSQL) -> Q:
    return Q(Exact(Coalesce(F("session_id"), Value("")), session))


class MessageQuerySet(QuerySet["Message"]):
    """Messages, found by where they stand in the tree. Row ids are meant where an argument is called `row_id`."""

    def with_active_leaf_of(self, session_id: str) -> "MessageQuerySet":
        """Add `active_leaf_id`, the message id of a session's active leaf."""
        return self.annotate(active_leaf_id=_rows(_ACTIVE_LEAF, (session_id,)))

    def tail(self, session_id: str, row_id: int | None, bounds: Bounds) -> "MessageQuerySet":
        """Newest messages of the path to a leaf, root first; without a row id, to the active leaf.

        Adds `floor`, the depth where the session's archive ends.
        """
        limits = (bounds.max_messages, bounds.exchange_bytes, bounds.max_bytes)
        tail = self.filter(pk__in=_rows(_TAIL, (row_id, session_id, *limits)))
        return tail.annotate(floor=_rows(_FLOOR, (session_id,))).order_by("depth")

    def tail_to_compaction(self, session_id: str, row_id: int | None, bounds: Bounds) -> "MessageQuerySet":
        """The same, down from the next message that ends a compaction of the session, that message included.

        Adds `compaction_count` too: how many compactions of the session are not undone.
        """
        limits = (bounds.max_messages, bounds.exchange_bytes, bounds.max_bytes)
        walk = (session_id, row_id, session_id, session_id, *limits)
        tail = self.filter(pk__in=_rows(_TAIL_TO_COMPACTION, walk))
        counted = tail.annotate(compaction_count=_rows(_COMPACTION_COUNT, (session_id,)))
        return counted.annotate(floor=_rows(_FLOOR, (session_id,))).order_by("depth")

    def on_path(
        self, session_id: str, row_id: int | None, min_depth: int, max_depth: int = NO_BOUND
    ) -> "MessageQuerySet":
        """Messages of the path to a leaf that lie between two depths, both included."""
        return self.filter(pk__in=_rows(_CLIMB, (row_id, session_id, min_depth, max_depth)))

    def shared_with_origin(self, session_id: str, min_depth: int) -> "MessageQuerySet":
        """Messages that a fork shares with its origin, from a depth on; none for a session that is no fork."""
        return self.filter(pk__in=_rows(_SHARED.replace(":floor:", "%s"), (session_id, min_depth)))

    def seen_by(self, session_id: str, min_depth: int) -> "MessageQuerySet":
        """Messages that belong to a session: its own, and from a depth on those it shares with its origin.

        Meant for further narrowing by an indexed column; on its own it reads the whole table.
        """
        shared = _rows(_SHARED.replace(":floor:", "%s"), (session_id, min_depth))
        return self.filter(Q(_own(session_id)) | Q(pk__in=shared))

    def named(self, session_id: str, message_ids: Sequence[str]) -> "MessageQuerySet":
        """Messages of a session by their ids, its own or shared with its origin."""
        lowest = _LOWEST_OF_IDS.replace(":ids:", ", ".join(["%s"] * len(message_ids)))
        shared = _rows(_SHARED.replace(":floor:", lowest), (session_id, *message_ids))
        return self.filter(message_id__in=message_ids).filter(Q(_own(session_id)) | Q(pk__in=shared))

    def named_at(self, session_id: str, depths: Mapping[str, int]) -> "MessageQuerySet":
        """Messages of a session by id: its own, and those that its origin owns at these depths.

        For ids that were on the shared path at these depths: ids are unique in the origin, so nothing has to be walked.
        What is shared and nobody's, or further up than the origin's own, is not among them; `named` finds it.
        """
        shared = Q(depth__lte=_rows(_FORKED_DEPTH, (session_id,))) & _own_of(_rows(_FORKED_SESSION, (session_id,)))
        places = Q()
        for message_id, depth in depths.items():
            places |= Q(message_id=message_id) & (Q(_own(session_id)) | (Q(depth=depth) & shared))
        return self.filter(message_id__in=list(depths)).filter(places)

    def roots_of(self, session_id: str) -> "MessageQuerySet":
        """Messages of a session's own without a parent, as far as they have a place."""
        return self.filter(session_id=session_id, parent__isnull=True, placed_at__isnull=False)

    def queue_of(self, session_id: str) -> "MessageQuerySet":
        """Accepted messages without a place, in order."""
        return self.filter(session_id=session_id, placed_at__isnull=True).order_by("queued_position", "pk")

    def leaves_below(self, session_id: str, row_id: int) -> "MessageQuerySet":
        """Ends of the branches below a message, itself when it is one, as a session sees them; newest first."""
        leaves = _rows(_LEAVES_BELOW, (session_id, row_id, session_id, row_id))
        return self.filter(pk__in=leaves).order_by("-placed_at", "-pk")

    def subtree(self, row_id: int) -> "MessageQuerySet":
        """A message and everything below it, whosever it is."""
        return self.filter(pk__in=_rows(_SUBTREE, (row_id,)))

    def needed_by_others(self, session_id: str) -> "MessageQuerySet":
        """Messages of a session that a fork reaches."""
        return self.filter(pk__in=_rows(_KEPT, (session_id, session_id)))

    def staying_without(self, scopes: Sequence[str]) -> "MessageQuerySet":
        """Messages of all sessions of some scopes that would stay if those were deleted: forks of others reach them."""
        return self.filter(pk__in=_rows(_STAYING.replace(":scopes:", ", ".join(["%s"] * len(scopes))), tuple(scopes)))

    def unreached(self, limit: int) -> "MessageQuerySet":
        """Messages whose session is gone and that no fork reaches, at most so many branches of them."""
        return self.filter(pk__in=_rows(_UNREACHED.replace(":start:", "1 = 1"), (limit,)))

    def unreached_above(self, row_id: int) -> "MessageQuerySet":
        """Of a message and those above it, the ones whose session is gone and that no fork reaches."""
        return self.filter(pk__in=_rows(_UNREACHED.replace(":start:", "m.id = %s"), (row_id, 1)))

    def erase(self) -> int:
        """Delete rows without loading them. The caller has seen to it that nothing points at them."""
        return self._raw_delete(self.db)
