"""Claim, renew, fence, settle: each decided by one conditional UPDATE whose row count is checked.

`select_for_update` does nothing on SQLite, so the UPDATE is what decides on both databases; SQLite's transactions are
IMMEDIATE, PostgreSQL rechecks the condition on the locked row. Every instant is the database's clock. Lock order for
callers: the fiber's row first (`fenced`, `cancel_fiber`), then rows of other apps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from django.db import IntegrityError, connection, transaction
from django.db.models import BigIntegerField, Case, F, Q, Value, When
from django.db.models.functions import Now

from fibers.conf import fiber_settings
from fibers.core.states import TERMINAL, FiberEvent, FiberStatus, advance, sources
from fibers.errors import LeaseLost
from fibers.models import Fiber, FiberStep
from fibers.queue.dispatch import dispatch_on_commit
from fibers.queue.enqueue import FiberSpec, insert_fiber
from fibers.registry import find_durable, resume_windows
from fibers.waits import RESUMED, Wait
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from thinkproject.kernel.retry import RetryPolicy
from thinkproject.kernel.statements import Columns, Statement

RENEW_BATCH = 500
ERROR_CHARACTERS: Final = 2000
RETRY: Final = RetryPolicy()
"""The pauses of a function that has no policy of its own."""
SEALER_RETRIES = 8  # what an ended fiber leaves must not be lost to a server that is away for a moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease that was won: the row as it stands now, and its journal."""

    fiber: Fiber
    entries: list[tuple[str, JSONValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A lease as its process knows it: the fence, and the progress to write."""

    fence: int
    progress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalResult:
    """Answer of the database to a heartbeat."""

    lost: frozenset[str]
    cancelled: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The outcome of a run. `ended_itself`: the function returned or raised its own outcome."""

    event: FiberEvent
    progress: int
    result: JSONValue = None
    error: JSONValue = None
    reason: str = ""
    delay_seconds: float = 0.0
    waits: tuple[Wait, ...] = ()  # of a fiber that parks
    is_failure: bool = False
    ended_itself: bool = True


def failed(
    code: str,
    message: str,
    *,
    will_retry: bool,
    delay_seconds: float = 0.0,
    progress: int = 0,
    ended_itself: bool = True,
) -> Settlement:
    """The outcome of a run that failed: again after a pause while it may, else for good. Long messages are cut."""
    return Settlement(
        event=FiberEvent.RETRY if will_retry else FiberEvent.FAIL,
        progress=progress,
        error={"code": code, "message": message[:ERROR_CHARACTERS], "retryable": will_retry},
        reason="retry" if will_retry else code[:64],
        delay_seconds=delay_seconds if will_retry else 0.0,
        is_failure=True,
        ended_itself=ended_itself,
    )


def words_of(error: BaseException) -> tuple[str, str]:
    """The code and the message under which an error is stored."""
    if isinstance(error, ThinkError):
        return error.code, error.message
    return "internal", f"{type(error).__name__}: {error}"


class _Lost(Exception):
    """Another claim was first."""


def claim(
    fiber_id: str,
    worker: str,
    begin: Callable[[Claim], None] | None = None,
    *,
    names: Sequence[str] | None = None,
) -> Claim | None:
    """Take the lease of a fiber, or return None when it is not there to be taken.

    `begin` is called in the transaction of the claim, once it is won; what it raises takes the claim back. `names`: the
    functions that the worker has; a fiber of another one is left to a worker that has it.
    **Concurrency:** of any number of callers one wins. Two fibers of one lane are kept apart by the condition, and by
    the unique constraint where both conditions held (PostgreSQL).
    """
    try:
        with transaction.atomic():
            fiber = _take(fiber_id, worker, names)
            if fiber is None:
                _note_waiting(fiber_id, names)
                return None
            won = Claim(fiber=fiber, entries=_journal(fiber))
            if begin is not None:
                begin(won)
            return won
    except _Lost:
        return None


_FIBER: Final = Columns(Fiber)

_CLAIMABLE: Final = """
f.status = 'pending' AND f.available_at <= :now: AND f.cancel_requested_at IS NULL
AND NOT EXISTS (
    SELECT 1 FROM think_fibers_fiber o
    WHERE o.lane = f.lane AND o.finished_at IS NULL AND o.status = 'running'
)
AND NOT EXISTS (
    SELECT 1 FROM think_fibers_fiber o
    WHERE o.lane = f.lane AND o.finished_at IS NULL AND o.lane_position < f.lane_position
    AND o.status IN ('pending', 'parked')
)
"""
_WITHIN_SHARE: Final = """
AND (f.share IS NULL OR NOT EXISTS (
    SELECT 1 FROM think_fibers_fiber o WHERE o.share = f.share AND o.status = 'running' LIMIT 1 OFFSET %s
))
"""
_NAMED: Final[Mapping[str, str]] = {
    "sqlite": "AND f.name IN (SELECT value FROM json_each(%s))",
    "postgresql": "AND f.name IN (SELECT jsonb_array_elements_text(CAST(%s AS jsonb)))",
}
_RESUMABLE: Final = "AND NOT (f.name = %s AND f.attempt > 0 AND f.updated_at < :later:)"


@lru_cache(maxsize=32)
def _claim_statement(vendor: str, has_names: bool, has_share_limit: bool, windows: int) -> Statement:
    """`FiberQuerySet.claimable().resumable()` and the claim itself as one statement."""
    return Statement(
        """
        UPDATE think_fibers_fiber AS f SET
            status = %s, reason = CASE WHEN reason = %s THEN reason ELSE '' END, worker = %s, fence = fence + 1,
            attempt = attempt + 1, lease_until = :later:, started_at = COALESCE(started_at, :now:),
            resume_requested_at = NULL, updated_at = :now:
        WHERE f.id = %s AND :claimable: :named: :within_share: :resumable: RETURNING :fiber:
        """,
        fiber=_FIBER,
        claimable=_CLAIMABLE,
        named=_NAMED[vendor] if has_names else "",
        within_share=_WITHIN_SHARE if has_share_limit else "",
        resumable=_RESUMABLE * windows,
    )


def _take(fiber_id: str, worker: str, names: Sequence[str] | None) -> Fiber | None:
    windows = resume_windows()
    limit = fiber_settings.running_per_share
    params: list[Any] = [advance(FiberStatus.PENDING, FiberEvent.CLAIM).value, RESUMED, worker]
    params += [fiber_settings.lease_seconds, fiber_id, *_names_and_limit(names, limit)]
    for name, seconds in windows.items():
        params += [name, -seconds]
    try:
        statement = _claim_statement(connection.vendor, names is not None, limit > 0, len(windows))
        row = statement.one(*params)
    except IntegrityError as error:
        raise _Lost from error
    return None if row is None else _FIBER.build(row)


def _names_and_limit(names: Sequence[str] | None, limit: int) -> list[Any]:
    return [*([] if names is None else [dump(names)]), *([limit - 1] if limit > 0 else [])]


def _note_waiting(fiber_id: str, names: Sequence[str] | None) -> None:
    """Have a fiber sent again soon, not only after the usual time.

    As soon as its share has room, or by the sweeper of a worker that has its function.
    """
    waiting = Fiber.objects.filter(pk=fiber_id, status=FiberStatus.PENDING, cancel_requested_at=None)
    is_elsewhere = Q(pk__in=[]) if names is None else ~Q(name__in=names)
    waiting.filter(Q(share__isnull=False) | is_elsewhere).update(dispatched_at=None)


def next_claimable(fiber_id: str, *, names: Sequence[str] | None = None) -> str | None:
    """Return the fiber that may run next in this one's lane, if any; for a fiber without a lane, None."""
    lane = Fiber.objects.filter(pk=fiber_id).values_list("lane", flat=True).first()
    return None if lane is None else next_in_lane(lane, names=names)


def next_in_lane(lane: str, *, names: Sequence[str] | None = None) -> str | None:
    """Return the id of the fiber that may run next in this lane, by a worker that has these functions."""
    limit = fiber_settings.running_per_share
    statement = _next_statement(connection.vendor, names is not None, limit > 0)
    row = statement.one(lane, *_names_and_limit(names, limit))
    return None if row is None else str(row[0])


@lru_cache(maxsize=8)
def _next_statement(vendor: str, has_names: bool, has_share_limit: bool) -> Statement:
    """`FiberQuerySet.live_in(lane).claimable()` as one statement."""
    return Statement(
        """
        SELECT f.id FROM think_fibers_fiber f
        WHERE f.lane = %s AND f.finished_at IS NULL AND :claimable: :named: :within_share:
        ORDER BY f.lane_position LIMIT 1
        """,
        claimable=_CLAIMABLE,
        named=_NAMED[vendor] if has_names else "",
        within_share=_WITHIN_SHARE if has_share_limit else "",
    )


def renew(worker: str, held: Mapping[str, Held]) -> RenewalResult:
    """Prolong all leases of a process in one UPDATE and read what happened to them.

    Rows that a fenced write has locked are skipped (PostgreSQL): that write prolongs its lease itself, and one slow
    transaction must not cost the process all its leases.
    """
    alive: dict[str, int] = {}
    cancelled: set[str] = set()
    ids = sorted(held)
    for start in range(0, len(ids), RENEW_BATCH):
        batch = ids[start : start + RENEW_BATCH]
        mine = Fiber.objects.filter(pk__in=batch, worker=worker, status=FiberStatus.RUNNING)
        with transaction.atomic():
            free = mine.select_for_update(skip_locked=True).order_by().values("pk")
            Fiber.objects.filter(pk__in=free).update(
                lease_until=_lease_end(), updated_at=Now(), progress=_progress({key: held[key] for key in batch})
            )
        for pk, fence, cancel in mine.values_list("pk", "fence", "cancel_requested_at"):
            alive[pk] = fence
            if cancel is not None:
                cancelled.add(pk)
    lost = frozenset(pk for pk, entry in held.items() if alive.get(pk) != entry.fence)
    return RenewalResult(lost=lost, cancelled=frozenset(cancelled) - lost)


@contextmanager
def fenced(fiber_id: str, fence: int, progress: int = 0) -> Iterator[None]:
    """Open a transaction that commits only while this lease holds.

    Its first statement is the conditional UPDATE of the fiber's row; it also prolongs the lease. **Errors:**
    `LeaseLost`, before anything else was written.
    """
    with transaction.atomic():
        if not _FENCED.run(fiber_settings.lease_seconds, progress, progress, fiber_id, fence):
            raise LeaseLost
        yield


_FENCED: Final = Statement(
    """
    UPDATE think_fibers_fiber SET lease_until = :later:, updated_at = :now:,
        progress = CASE WHEN progress < %s THEN %s ELSE progress END
    WHERE id = %s AND fence = %s AND status = 'running'
    """
)


@contextmanager
def completing(fiber_id: str, fence: int, progress: int, result: JSONValue) -> Iterator[bool]:
    """Open the last transaction of a run: its first statement completes the fiber and gives the lease up.

    Yields false where a cancel was requested before: then this is a fenced transaction like others, and `settle`
    decides how the run has ended. **Errors:** `LeaseLost`, before anything else was written.
    """
    with transaction.atomic():
        status = advance(FiberStatus.RUNNING, FiberEvent.COMPLETE).value
        is_completed = bool(_COMPLETE.run(status, dump(result), progress, progress, fiber_id, fence))
        if not is_completed and not _FENCED.run(fiber_settings.lease_seconds, progress, progress, fiber_id, fence):
            raise LeaseLost
        yield is_completed


_COMPLETE: Final = Statement(
    """
    UPDATE think_fibers_fiber SET status = %s, reason = '', result = %s, error = NULL, worker = '',
        lease_until = NULL, available_at = :now:, dispatched_at = NULL, waits = '[]', parked_until = NULL,
        finished_at = :now:, updated_at = :now:, progress = CASE WHEN progress < %s THEN %s ELSE progress END
    WHERE id = %s AND fence = %s AND status = 'running' AND cancel_requested_at IS NULL
    """
)


def settle(fiber_id: str, fence: int, settlement: Settlement) -> FiberStatus:
    """Write how a run ended and give the lease up; return the status that stands now.

    A cancel that was requested before wins over every other ending. **Errors:** `LeaseLost`.
    """
    with fenced(fiber_id, fence, settlement.progress):
        fiber = Fiber.objects.annotate(now=Now()).get(pk=fiber_id)
        event = _deciding_event(fiber, settlement)
        status = advance(FiberStatus.RUNNING, event)
        is_terminal = status in TERMINAL
        reason = settlement.reason
        if event is FiberEvent.CANCEL:
            reason = fiber.reason or settlement.reason or "cancelled"
        elif event is FiberEvent.RESUME:
            reason = RESUMED  # the answer came before it had parked
        waits = _timed(settlement.waits, fiber)
        Fiber.objects.filter(pk=fiber_id).update(
            status=status,
            reason=reason,
            result=settlement.result if event is settlement.event else None,
            error=settlement.error if settlement.error is not None or is_terminal else fiber.error,
            retries=F("retries") + int(settlement.is_failure),
            worker="",
            lease_until=None,
            # On SQLite a sum has more digits than the clock, and would not be due within the same millisecond.
            available_at=Now() + timedelta(seconds=settlement.delay_seconds) if settlement.delay_seconds else Now(),
            dispatched_at=None,
            waits=waits,
            parked_until=first_end(waits) if status is FiberStatus.PARKED else None,
            finished_at=Now() if is_terminal else None,
            updated_at=Now(),
        )
        ended_itself = settlement.ended_itself and (
            event is settlement.event or settlement.event is FiberEvent.COMPLETE
        )
        if is_terminal and not ended_itself:
            start_sealer(fiber, status, reason)
    return status


def _timed(waits: Sequence[Wait], fiber: Fiber) -> list[JSONObject]:
    """The waits with their expiry instants. A wait resumed after another one's answer keeps its own."""
    now: datetime = fiber.now  # type: ignore[attr-defined]  # annotated by `settle`
    known = {wait["key"]: wait for wait in fiber.waits}
    timed = []
    for wait in waits:
        until = (now + timedelta(seconds=wait.seconds)).isoformat() if wait.seconds > 0 else None
        instants = {"since": now.isoformat(), "until": until}
        kept = {name: value for name, value in known.get(wait.key, {}).items() if name in instants}
        timed.append({**wait.to_json(), **instants, **kept})
    return timed


def first_end(waits: Sequence[JSONObject]) -> datetime | None:
    """When the first of some waits is over; nothing where none has an end."""
    return min((datetime.fromisoformat(wait["until"]) for wait in waits if wait["until"]), default=None)


def sealer_key(fiber_id: str, fence: int) -> str:
    """Give the key of the fiber that tidies up after the last run of another."""
    return f"{fiber_id}:sealed:{fence}"


def start_sealer(fiber: Fiber, status: FiberStatus, reason: str) -> None:
    """Tidy up after a fiber whose function did not see its end: start the fiber that is declared for it.

    It runs next in the lane, with a fence of its own: a worker that was given up for dead cannot write beside it.
    Where the function never ran there is nothing to clean up; callbacks run at once.
    """
    entry = find_durable(fiber.name)
    if entry is None:
        return
    if fiber.attempt == 0:
        if entry.never_started is not None:
            entry.never_started(fiber.payload)
        return
    if not entry.sealed:
        return
    Fiber.objects.filter(pk=fiber.pk).update(fence=F("fence") + 1)
    fiber.fence += 1
    payload = {
        "fiber_id": fiber.pk,
        "fence": fiber.fence,
        "name": fiber.name,
        "payload": fiber.payload,
        "status": status.value,
        "reason": reason,
    }
    insert_fiber(
        FiberSpec(
            name=entry.sealed,
            payload=payload,
            lane=fiber.lane,
            behind=fiber.lane_position,
            max_retries=SEALER_RETRIES,
            owner_id=fiber.owner_id,
            key=sealer_key(fiber.pk, fiber.fence),
        )
    )


def release_lane(lane: str | None) -> None:
    """Notify the workers of the next fiber of a lane that became free, on commit."""
    following = None if lane is None else next_in_lane(lane)
    if following is not None:
        dispatch_on_commit([following])


def _deciding_event(fiber: Fiber, settlement: Settlement) -> FiberEvent:
    if fiber.cancel_requested_at is not None and settlement.event in _CANCELLABLE:
        return FiberEvent.CANCEL
    if settlement.event is FiberEvent.PARK and fiber.resume_requested_at is not None:
        return FiberEvent.RESUME
    return settlement.event


_CANCELLABLE = frozenset(event for event in FiberEvent if FiberStatus.RUNNING in sources(event))


def _journal(fiber: Fiber) -> list[tuple[str, JSONValue]]:
    if fiber.attempt == 1:
        return []
    return list(FiberStep.objects.filter(fiber=fiber).order_by("pk").values_list("step_key", "value"))


def _lease_end() -> object:
    return Now() + timedelta(seconds=fiber_settings.lease_seconds)


def _progress(held: Mapping[str, Held]) -> Case:
    advanced = [When(pk=pk, then=Value(entry.progress)) for pk, entry in held.items()]
    return Case(*advanced, default=F("progress"), output_field=BigIntegerField())
