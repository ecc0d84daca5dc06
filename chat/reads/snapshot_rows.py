"""The rows of a snapshot in one statement, in SQL that SQLite and PostgreSQL read alike.

Each socket that opens, each turn that ends and each list of messages asks for it. What it returns is one moment:
between two statements a turn may end and its answer be stored. `tests/db/chat/reads/test_snapshot_rows.py` has the
same by the ORM.
"""

from typing import Any, Final, NamedTuple

from django.db import connection

from chat.agent.base import InstanceKey
from chat.models import AgentInstance
from fibers.core.states import TERMINAL
from fibers.selectors import silent_condition
from tools_app.mcp.selectors import HAS_SERVERS

# The cross join keeps SQLite to this order. The lane as a value keeps it from filtering by all that runs anywhere.
_SNAPSHOT: Final = """
WITH i AS (
    SELECT i.id, i.session_id, i.turn_count, i.generation, i.state, i.state_version, i.model_choice
    FROM think_chat_agentinstance i :lineage:
),
picked(id) AS (
    SELECT t.id FROM think_fibers_fiber f CROSS JOIN think_chat_turn t
    WHERE f.lane = (SELECT 'instance:' || i.id FROM i) AND f.finished_at IS NULL AND f.status NOT IN (:terminal:)
    AND t.fiber_id = f.id AND t.session_id = (SELECT i.session_id FROM i)
    UNION
    SELECT (
        SELECT t.id FROM think_chat_turn t WHERE t.session_id = i.session_id AND t.instance_id = i.id
        AND t.answered_by_id IS NULL ORDER BY t.position DESC LIMIT 1
    ) FROM i
    :named:
)
SELECT i.id, i.session_id, s.change_seq, i.turn_count, i.generation, i.state, i.state_version, i.model_choice,
    :has_mcp_servers:, EXISTS (SELECT 1 FROM think_chat_agentrun r WHERE r.parent_id = i.id),
    t.id, t.session_id, t.request_id, t.position, t.generation, t.trigger, t.started_at IS NOT NULL, t.options,
    t.assistant_id, t.error_text, t.parent_id IS NOT NULL,
    f.status, f.reason, f.attempt, :silent:,
    CASE WHEN f.status IN ('failed', 'interrupted') THEN
        EXISTS (SELECT 1 FROM think_chat_turnseen x WHERE x.turn_id = t.id AND x.user_id = %s)
    END
FROM (SELECT 1) AS always
LEFT JOIN i ON 1 = 1
LEFT JOIN think_sessions_session s ON s.id = i.session_id
LEFT JOIN picked ON 1 = 1
LEFT JOIN think_chat_turn t ON t.id = picked.id
LEFT JOIN think_fibers_fiber f ON f.id = t.fiber_id
ORDER BY t.position
""".replace(":terminal:", ", ".join(f"'{status.value}'" for status in sorted(TERMINAL))).replace(
    ":has_mcp_servers:", HAS_SERVERS.replace(":owner:", "%s").replace(":instance:", "i.id")
)


_NAMED: Final = (
    "UNION SELECT t.id FROM think_chat_turn t WHERE t.:column: = %s AND t.instance_id = (SELECT i.id FROM i)"
)

_VERSION: Final = """
SELECT s.id, s.change_seq FROM think_chat_agentinstance i JOIN think_sessions_session s ON s.id = i.session_id :lineage:
"""

_ENDING: Final = """
SELECT t.finished_at IS NOT NULL, f.status, f.id, f.fence
FROM think_chat_turn t JOIN think_fibers_fiber f ON f.id = t.fiber_id WHERE t.id = %s
"""


class TurnRow(NamedTuple):
    """Columns of a turn and of its fiber. `is_seen`: of a failed one, whether this user saw that."""

    id: str
    session_id: str
    request_id: str
    position: int
    generation: int
    trigger: str
    has_begun: bool
    options: str  # JSON
    assistant_id: str
    error_text: str
    has_parent: bool
    status: str
    reason: str
    attempt: int
    is_silent: bool
    is_seen: bool | None


class SnapshotRows(NamedTuple):
    """An instance, its session, and of its turns those that are active, the newest and the named one, in order."""

    instance_id: str | None  # none before the first write; then all is empty but for `has_mcp_servers`
    session_id: str | None
    change_seq: int | None  # of the session
    turn_count: int
    generation: int
    state: str | None  # JSON
    state_version: int
    model_choice: str | None  # JSON
    has_mcp_servers: bool
    has_runs: bool  # of other agents for it
    turns: list[TurnRow]


class EndingRow(NamedTuple):
    """Columns that decide whether a turn is over."""

    is_finished: bool
    status: str
    fiber_id: str
    fence: int


def snapshot_rows(key: InstanceKey, user_id: int, *, turn_id: str = "", request_id: str = "") -> SnapshotRows:
    """Read them. One statement. The named turn may be of any session."""
    lineage, address = _lineage(key)
    silent, seconds = silent_condition("f")
    name, owner = turn_id or request_id, _user_value(key.owner_id)
    named = _NAMED.replace(":column:", "id" if turn_id else "request_id") if name else ""
    sql = _SNAPSHOT.replace(":lineage:", lineage).replace(":silent:", silent).replace(":named:", named)
    with connection.cursor() as cursor:
        cursor.execute(sql, [*address, *([name] if name else ()), owner, *seconds, _user_value(user_id)])
        rows = cursor.fetchall()
    turns = [TurnRow(*row[10:]) for row in rows if row[10] is not None]
    instance: list[Any] = [*rows[0][:10], turns]
    return SnapshotRows(*instance)


def version_row(key: InstanceKey) -> tuple[str, int] | None:
    """The current session of an address, and the number of its last change."""
    lineage, address = _lineage(key)
    with connection.cursor() as cursor:
        cursor.execute(_VERSION.replace(":lineage:", lineage), address)
        found: tuple[str, int] | None = cursor.fetchone()
    return found


def ending_row(turn_id: str) -> EndingRow | None:
    """The state of a turn's end; nothing for a deleted turn."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDING, [turn_id])
        found: list[Any] | None = cursor.fetchone()
    return None if found is None else EndingRow(*found)


def _lineage(key: InstanceKey) -> tuple[str, list[Any]]:
    """Joins and conditions that find the row of an address, as `rows.lookup_of` does: along the rows above it."""
    joins, conditions, params = "", [], []
    alias, at, depth = "i", key, 0
    while True:
        for column, value in (("owner_id", _user_value(at.owner_id)), ("agent", at.agent), ("name", at.name)):
            conditions.append(f"{alias}.{column} IS NULL" if value is None else f"{alias}.{column} = %s")
            params += [] if value is None else [value]
        conditions.append(f"{alias}.deleted_at IS NULL")
        if at.parent is None:
            break
        depth += 1
        joins += f" JOIN think_chat_agentinstance a{depth} ON a{depth}.id = {alias}.parent_id"
        alias, at = f"a{depth}", at.parent
    return f"{joins} WHERE {' AND '.join(conditions)} AND {alias}.parent_id IS NULL", params


def _user_value(user_id: Any) -> Any:
    """A user's key as the database has it: a project's users may have UUIDs."""
    if user_id is None or isinstance(user_id, int):
        return user_id
    return AgentInstance._meta.get_field("owner").get_db_prep_value(user_id, connection)
