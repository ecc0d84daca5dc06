"""Inserts fibers and assigns lane positions; used by services and leases."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now

from fibers.errors import FiberKeyTaken
from fibers.models import Fiber, new_fiber_id
from fibers.queue.dispatch import dispatch_on_commit
from thinkproject.kernel.jsonvalue import JSONValue

POSITION_TRIES = 20
SHORT_SECONDS = 30.0
"""Workers are notified of delays up to this in advance, so that they end in time; the sweeper handles longer ones."""
MARGIN_SECONDS = 0.05  # the database's clock decides whether it is due
LANE_GAP = 10
"""Distance of two positions in a lane: a fiber that tidies up after another goes between it and the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberSpec:
    """The caller's choices for a new fiber."""

    name: str
    payload: JSONValue
    lane: str | None = None
    share: str | None = None  # of how many may run at a time; see `FiberQuerySet.within_share`
    after_position: int | None = None  # directly behind this one of the lane, before those that wait
    owner_id: int | str | None = None
    key: str | None = None
    delay_seconds: float = 0.0
    max_retries: int = 0
    metadata: JSONValue = field(default_factory=dict)


def insert_fiber(spec: FiberSpec) -> Fiber:
    """Insert a pending fiber and notify the workers on commit; a known key returns the fiber that has it.

    **Concurrency:** positions and keys are settled by unique constraints: a collision is tried again in a savepoint.
    **Errors:** `FiberKeyTaken` when the key belongs to another function.
    """
    for attempt in range(POSITION_TRIES):
        known = _find_by_key(spec)
        if known is not None:
            return known
        try:
            with transaction.atomic():
                fiber_id = _insert(spec)
        except IntegrityError:
            if attempt == POSITION_TRIES - 1:
                raise
            continue
        if spec.delay_seconds <= 0:
            dispatch_on_commit([fiber_id])
        elif spec.delay_seconds <= SHORT_SECONDS:
            dispatch_on_commit([fiber_id], delay_seconds=spec.delay_seconds + MARGIN_SECONDS)
        return Fiber.objects.get(pk=fiber_id)
    raise AssertionError("unreachable")


def _find_by_key(spec: FiberSpec) -> Fiber | None:
    if spec.key is None:
        return None
    known = Fiber.objects.filter(key=spec.key).first()
    if known is not None and known.name != spec.name:
        raise FiberKeyTaken(f"key {spec.key!r} belongs to a fiber of {known.name!r}, not of {spec.name!r}")
    return known


def _insert(spec: FiberSpec) -> str:
    fiber_id = new_fiber_id()
    position = 0
    if spec.lane is not None:
        position = _next_position(spec)
    is_due = spec.delay_seconds <= 0
    Fiber.objects.create(
        pk=fiber_id,
        name=spec.name,
        payload=spec.payload,
        metadata=spec.metadata,
        owner_id=spec.owner_id,
        lane=spec.lane,
        lane_position=position,
        share=spec.share,
        key=spec.key,
        max_retries=spec.max_retries,
        available_at=Now() if is_due else Now() + timedelta(seconds=spec.delay_seconds),
        dispatched_at=Now() if is_due else None,  # a delayed one is sent by the sweeper as well, when it is due
    )
    return fiber_id


def _next_position(spec: FiberSpec) -> int:
    """The end of the lane, or a place between two of its fibers."""
    lane = Fiber.objects.filter(lane=spec.lane)
    after = spec.after_position
    if after is not None:
        following = after - after % LANE_GAP + LANE_GAP
        last: int = lane.filter(lane_position__gte=after, lane_position__lt=following).aggregate(
            last=Max("lane_position", default=after)
        )["last"]
        if last + 1 < following:
            return last + 1
    end: int = lane.aggregate(last=Max("lane_position", default=0))["last"]
    return end - end % LANE_GAP + LANE_GAP
