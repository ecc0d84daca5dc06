"""Places of hits in their trees: path and fork. A fixed number of queries for each page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from django.db import connection
from django.db.models import Q

from sessions_app.models import Message, Session

MAX_STEPS: Final = 10_000  # that a page of hits may climb in all to say whether they are on the path
MAX_FORKS: Final = 200

# Every start climbs so many steps; each step is one look-up by row id.
_CLIMB: Final = """
WITH RECURSIVE up(number, id, steps) AS (
    :starts:
    UNION ALL
    SELECT number, (SELECT m.parent_id FROM think_sessions_message m WHERE m.id = up.id), steps - 1
    FROM up WHERE steps > 0
)
SELECT number, id FROM up WHERE id IN (:targets:)
"""
_START: Final = "SELECT CAST(%s AS bigint) AS number, CAST(%s AS bigint) AS id, CAST(%s AS bigint) AS steps"

# What the forks of some sessions share with their origins.
_SHARED: Final = """
WITH RECURSIVE shared(id, parent_id) AS (
    SELECT m.id, m.parent_id FROM think_sessions_message m
    WHERE m.id IN (SELECT s.forked_from_id FROM think_sessions_session s WHERE s.:column: IN (:values:))
    UNION
    SELECT shared.parent_id, (SELECT m.parent_id FROM think_sessions_message m WHERE m.id = shared.parent_id)
    FROM shared WHERE shared.parent_id IS NOT NULL
)
SELECT id FROM shared
"""


def shared_rows(column: str, values: Sequence[str]) -> tuple[str, list[object]] | None:
    """SQL of the rows that forks among these sessions share with others; nothing where none is a fork. One query."""
    if not Session.objects.filter(**{f"{column}__in": values}, forked_from__isnull=False).exists():
        return None
    sql = _SHARED.replace(":column:", column).replace(":values:", _marks(values))
    return sql, list(values)


def on_path(hits: Iterable[tuple[str, Message]]) -> tuple[dict[tuple[str, int], bool], dict[str, str]]:
    """Return which hits, each in a session, lie on the active path there, and the leaf of each such path.

    Hits beyond 10,000 steps in all are left out. Two queries.
    """
    wanted = list(hits)
    columns = ("pk", "active_leaf_id", "active_leaf__depth", "active_leaf__message_id")
    sessions = Session.objects.filter(pk__in={session_id for session_id, _ in wanted}, active_leaf__isnull=False)
    leaves = {pk: (row_id, depth, name) for pk, row_id, depth, name in sessions.values_list(*columns)}
    are_shown: dict[tuple[str, int], bool] = {}
    far: dict[str, int] = {}
    budget = MAX_STEPS // max(len(leaves), 1)
    for session_id, row in wanted:
        leaf = leaves.get(session_id)
        distance = -1 if leaf is None else leaf[1] - row.depth
        if distance <= budget:
            are_shown[session_id, row.pk] = False
            far[session_id] = max(far.get(session_id, 0), distance)
    keys = [session_id for session_id in far if session_id in leaves]
    starts = [(leaves[session_id][0], far[session_id]) for session_id in keys]
    for number, row_id in _climb(starts, [row_id for _, row_id in are_shown]):
        if (keys[number], row_id) in are_shown:
            are_shown[keys[number], row_id] = True
    return are_shown, {session_id: leaf[2] for session_id, leaf in leaves.items()}


def forks_with(rows: Sequence[Message], condition: Q) -> Mapping[int, Session]:
    """For rows of other sessions: the newest session under the condition that shares each as a fork. Two queries."""
    if not rows:
        return {}
    top = min(row.depth for row in rows)
    forks = Session.objects.filter(condition, forked_from__depth__gte=top).select_related("forked_from")
    newest = list(forks.only("scope", "updated_at", "forked_from__depth").order_by("-updated_at", "id")[:MAX_FORKS])
    starts = [(fork.forked_from.pk, fork.forked_from.depth - top) for fork in newest if fork.forked_from]
    found: dict[int, Session] = {}
    for number, row_id in _climb(starts, [row.pk for row in rows]):
        fork = newest[number]
        if row_id not in found or fork.updated_at > found[row_id].updated_at:
            found[row_id] = fork
    return found


def _climb(starts: Sequence[tuple[int, int]], targets: Sequence[int]) -> list[tuple[int, int]]:
    """Ancestors of each start (by number) among the targets, within its number of steps."""
    if not starts or not targets:
        return []
    params = [value for number, (row_id, steps) in enumerate(starts) for value in (number, row_id, steps)]
    sql = _CLIMB.replace(":starts:", " UNION ALL ".join([_START] * len(starts))).replace(":targets:", _marks(targets))
    with connection.cursor() as cursor:
        cursor.execute(sql, [*params, *targets])
        return list(cursor.fetchall())


def _marks(values: Sequence[object]) -> str:
    return ", ".join(["%s"] * len(values))
