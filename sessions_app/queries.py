"""The walks over the tree of messages, in SQL that SQLite and PostgreSQL read alike.

A path is walked from its leaf upwards and stops as soon as the caller has enough: a page of a conversation costs the
page, whatever the history's length. Table names are written out: the app's label is part of the product.
"""

from dataclasses import dataclass
from typing import Final

from django.db.models import F, Q, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

NO_BOUND: Final = 2_000_000_000

# In the walks below what is asked of the next row names the walk too. A condition on that row alone suggests to SQLite,
# where it has statistics, that most rows fail: it then reads the whole table for a filter before the first step.

# Newest rows of a path, as far as it is not archived. Beyond `max_bytes` it goes on only for the newest exchange: until
# a user's message is in.
TAIL: Final = """
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

# What clients get of a session, as its rows hold it: that tail, and the messages that wait for a place. The place is a
# depth in the path, or a position in the queue.
WINDOW: Final = TAIL.replace(
    "SELECT id FROM path",
    """
SELECT m.message_id, m.role, m.content, m.turn_id, m.author, 0 AS waits, m.depth AS place, m.id, path.floor
FROM path JOIN think_sessions_message m ON m.id = path.id
UNION ALL
SELECT m.message_id, m.role, m.content, m.turn_id, m.author, 1, m.queued_position, m.id, 0
FROM think_sessions_message m WHERE m.session_id = %s AND m.placed_at IS NULL
ORDER BY waits, place, id
""",
)

# The same, but the walk ends at a message that ends a compaction: what that covers is not read.
TAIL_TO_COMPACTION: Final = """
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
CLIMB: Final = """
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
SHARED: Final = """
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
FORKED_SESSION: Final = """
SELECT COALESCE(f.session_id, '-')
FROM think_sessions_session s JOIN think_sessions_message f ON f.id = s.forked_from_id WHERE s.id = %s
"""
FORKED_DEPTH: Final = """
SELECT f.depth FROM think_sessions_session s JOIN think_sessions_message f ON f.id = s.forked_from_id WHERE s.id = %s
"""
LOWEST_OF_IDS: Final = "(SELECT MIN(depth) FROM think_sessions_message WHERE message_id IN (:ids:))"

ACTIVE_LEAF: Final = """
SELECT leaf.message_id FROM think_sessions_session s JOIN think_sessions_message leaf ON leaf.id = s.active_leaf_id
WHERE s.id = %s
"""

FLOOR: Final = "SELECT archived_depth FROM think_sessions_session WHERE id = %s"
COMPACTION_COUNT: Final = "SELECT COUNT(*) FROM think_sessions_compaction WHERE session_id = %s AND undone_at IS NULL"

# Ends of the branches below a message, as one session sees the tree. COALESCE keeps SQLite from looking a row up by
# its session, which is a walk through the whole history.
LEAVES_BELOW: Final = """
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

SUBTREE: Final = """
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
KEPT: Final = """
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
STAYING: Final = """
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
UNREACHED: Final = """
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
class PathBounds:
    """Limits for reading a path. The newest exchange may use `exchange_bytes`; the newest message is always read."""

    max_messages: int
    max_bytes: int = NO_BOUND
    exchange_bytes: int = NO_BOUND


def rows_by(sql: str, params: tuple[str | int | None, ...]) -> RawSQL:
    """Expression of one of the texts above, which are constants; every value is a parameter."""
    return RawSQL(sql, params)  # noqa: S611 - as explained above


def own_rows(session_id: str) -> Exact:
    """Compare the session without using its index: a rarer column (id, parent) selects the rows."""
    return Exact(Coalesce(F("session_id"), Value("")), session_id)


def own_rows_of(session: RawSQL) -> Q:
    """Condition: rows of the session that this expression names."""
    return Q(Exact(Coalesce(F("session_id"), Value("")), session))
