"""Inserts fibers and assigns lane positions; used by services and leases."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db.models import Max, Q
from django.db.models.functions import Now

from fibers.errors import FiberError, FiberKeyTaken
from fibers.models import Fiber, new_fiber_id
from fibers.queue.dispatch import dispatch_on_commit
from fibers.registry import queue_of
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.statements import Columns, Insert

POSITION_TRIES = 20
SHORT_SECONDS = 30.0
"""Workers are notified of delays up to this in advance, so that they end in time; the sweeper handles longer ones."""
MARGIN_SECONDS = 0.05  # the database's clock decides whether it is due
LANE_GAP = 10
"""Distance of two positions in a lane: a fiber that tidies up after another goes between it and the next."""


@dataclass(frozen=True, slots=True)
class FiberSpec:
    """The caller's choices for a new fiber. Errors: `FiberError` for a blank key, lane or scope."""

    name: str
    payload: JSONValue
    _: KW_ONLY
    lane: str | None = None
    fiber_id: str = ""  # the caller's own; empty: a new one
    scope: str | None = None  # what it belongs to
    share: str | None = None  # of how many may run at a time; see `FiberQuerySet.within_share`
    behind: int | None = None  # the place in the lane that it follows, before those that wait
    owner_id: int | str | None = None
    key: str | None = None
    delay_seconds: float = 0.0
    max_retries: int = 0
    metadata: JSONValue = None

    def __post_init__(self) -> None:
        """Refuse names of nothing."""
        for label in ("key", "lane", "scope"):
            value = getattr(self, label)
            if value is not None and not value.strip():
                raise FiberError(f"a fiber's {label} may not be blank")

    def columns(self) -> dict[str, Any]:
        """The columns that hold what was chosen."""
        chosen: dict[str, Any] = {name: getattr(self, name) for name in _CHOSEN}
        return chosen | {
            "id": self.fiber_id or new_fiber_id(),
            "metadata": {} if self.metadata is None else self.metadata,
        }


_CHOSEN: Final = tuple(
    each.name for each in fields(FiberSpec) if each.name not in {"fiber_id", "behind", "delay_seconds", "metadata"}
)
_VALUES: Final = (
    *_CHOSEN,
    "id",
    "metadata",
    "status",
    "reason",
    "fence",
    "worker",
    "attempt",
    "retries",
    "recoveries",
    "progress",
    "recovered_progress",
    "waits",
)
_ROW: Final = Columns(Fiber)
_END_OF_LANE: Final = (
    f"(SELECT COALESCE(MAX(lane_position), 0) / {LANE_GAP} * {LANE_GAP} + {LANE_GAP} FROM think_fibers_fiber"  # noqa: S608 - a constant
    " WHERE lane = %s)"
)
# A delayed one is sent by the sweeper as well, when it is due.
_TIMES: Final = {"available_at": ":later:", "dispatched_at": "CASE WHEN CAST(%s AS REAL) <= 0 THEN :now: END"}
_RETURNED: Final = "ON CONFLICT DO NOTHING RETURNING :row:"
_INSERT: Final = Insert(Fiber, *_VALUES, "lane_position", **_TIMES, then=_RETURNED, row=_ROW)
_INSERT_LAST: Final = Insert(Fiber, *_VALUES, lane_position=_END_OF_LANE, **_TIMES, then=_RETURNED, row=_ROW)


def insert_fiber(spec: FiberSpec) -> Fiber:
    """Insert a pending fiber and notify the workers on commit; a known key or id returns the fiber that has it.

    One statement for a fiber without either. **Concurrency:** positions and keys are settled by unique constraints: a
    collision inserts nothing and is tried again. **Errors:** `FiberKeyTaken` when it belongs to another function.
    """
    for _ in range(POSITION_TRIES):
        known = _find_known(spec)
        if known is not None:
            return known
        fiber = _insert(spec)
        if fiber is None:
            continue
        if spec.delay_seconds <= 0:
            dispatch_on_commit([fiber.pk], queue=queue_of(spec.name))
        elif spec.delay_seconds <= SHORT_SECONDS:
            delay = spec.delay_seconds + MARGIN_SECONDS
            dispatch_on_commit([fiber.pk], delay_seconds=delay, queue=queue_of(spec.name))
        return fiber
    raise FiberError(f"no place in lane {spec.lane!r} could be had")


def insert_fibers(specs: Sequence[FiberSpec]) -> None:
    """Insert pending fibers of no lane, due at once; workers are notified on commit.

    A few statements for any number of them. Those whose key is taken are left out.
    """
    rows = [Fiber(**spec.columns(), dispatched_at=Now()) for spec in specs]
    Fiber.objects.bulk_create(rows, ignore_conflicts=True)
    for queue in {queue_of(row.name) for row in rows}:
        dispatch_on_commit([row.pk for row in rows if queue_of(row.name) == queue], queue=queue)


def _find_known(spec: FiberSpec) -> Fiber | None:
    if spec.key is None and not spec.fiber_id:
        return None
    same = [Q(key=spec.key)] if spec.key is not None else []
    same += [Q(pk=spec.fiber_id)] if spec.fiber_id else []
    known = Fiber.objects.filter(reduce(or_, same)).first()
    if known is not None and known.name != spec.name:
        raise FiberKeyTaken(f"{spec.key or spec.fiber_id!r} belongs to a fiber of {known.name!r}, not of {spec.name!r}")
    return known


def _insert(spec: FiberSpec) -> Fiber | None:
    """The new row; nothing when another fiber has its key or its place in the lane."""
    delay_seconds = max(spec.delay_seconds, 0.0)
    values = spec.columns()
    if spec.lane is None or spec.behind is not None:
        values["lane_position"] = 0 if spec.lane is None else _position_after(spec.lane, spec.behind)
        row = _INSERT.one(values, delay_seconds, delay_seconds)
    else:
        row = _INSERT_LAST.one(values, spec.lane, delay_seconds, delay_seconds)
    return None if row is None else _ROW.build(row)


def _position_after(lane_name: str, after: int | None) -> int:
    """A place between two of a lane's fibers, or its end."""
    lane = Fiber.objects.filter(lane=lane_name)
    if after is not None:
        following = after - after % LANE_GAP + LANE_GAP
        last: int = lane.filter(lane_position__gte=after, lane_position__lt=following).aggregate(
            last=Max("lane_position", default=after)
        )["last"]
        if last + 1 < following:
            return last + 1
    return end_of_lane(lane_name)


def end_of_lane(lane: str) -> int:
    """The place behind everything that is and was in a lane."""
    end: int = Fiber.objects.filter(lane=lane).aggregate(last=Max("lane_position", default=0))["last"]
    return end - end % LANE_GAP + LANE_GAP
