"""Write operations on schedules for other apps. Sync; what is stored is durable with the caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from fibers.core.schedules.states import ScheduleEvent, ScheduleStatus, advance, sources
from fibers.core.schedules.timing import Timing
from fibers.core.states import TERMINAL, FiberStatus
from fibers.errors import IllegalMove, ScheduleInvalid, ScheduleNotFound, SchedulesFull
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules.clock import database_now
from fibers.schedules.conf import schedule_settings
from fibers.schedules.firing import start_run
from fibers.services import cancel_fiber
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONValue, byte_size, fingerprint
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

MAX_PAYLOAD_BYTES: Final = 64 * 1024
MAX_TITLE: Final = 200
TRIES: Final = 5
TESTS_PER_MINUTE: Final = 10
"""Runs besides their times of one user's schedules."""
RUN_SECONDS: Final = 3600
"""When a run counts as hung, where its schedule does not say: it is stopped once the next one is due."""
CANCELLED: Final = "schedule_cancelled"
"""Reason of a run whose schedule was cancelled before it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDraft:
    """The caller's choices for a schedule.

    `is_once`: the same again in a scope returns what is there. `error`: it is broken from the start, and never fires.
    """

    scope: str
    timing: Timing
    function: str
    payload: JSONValue = None
    owner_id: int | None = None
    title: str = ""
    created_by: str = ""
    max_retries: int = 0
    can_overlap: bool = False
    max_run_seconds: int | None = None
    is_once: bool = False
    declaration: str | None = None
    error: str = ""
    identity: JSONValue = field(default=None)  # what makes two the same besides the times; the payload by default


def create_schedule(draft: ScheduleDraft) -> tuple[Schedule, bool]:
    """Store a schedule and arm it; return it, and whether it is new.

    **Concurrency:** unique constraints decide between two that store the same one. The owner's row is locked for the
    count. **Errors:** `ScheduleInvalid`, also for an instant that is over; `SchedulesFull`.
    """
    _check(draft)
    once = _fingerprint(draft) if draft.is_once else None
    for _ in range(TRIES):
        if once is not None:
            known = Schedule.objects.filter(scope=draft.scope, fingerprint=once).first()
            if known is not None and known.status != ScheduleStatus.ENDED:
                return known, False
            if known is not None:  # one that is over does not stand in the way of the same again
                Schedule.objects.filter(pk=known.pk, status=ScheduleStatus.ENDED).update(fingerprint=None)
        try:
            with transaction.atomic():
                return _insert(draft, once), True
        except IntegrityError:
            if once is None:
                raise
    raise ScheduleInvalid("The schedule could not be stored. Try again.")


def _insert(draft: ScheduleDraft, once: str | None) -> Schedule:
    now = database_now()
    draft.timing.check_ahead(now)
    _check_room(draft.owner_id)
    return Schedule.objects.create(
        scope=draft.scope,
        owner_id=draft.owner_id,
        title=draft.title[:MAX_TITLE],
        kind=draft.timing.kind,
        spec=draft.timing.spec,
        zone=draft.timing.zone,
        function=draft.function,
        payload=draft.payload,
        max_retries=draft.max_retries,
        can_overlap=draft.can_overlap,
        max_run_seconds=draft.max_run_seconds or RUN_SECONDS,
        created_by=draft.created_by,
        declaration=draft.declaration,
        fingerprint=once,
        error=draft.error,
        status=ScheduleStatus.BROKEN if draft.error else ScheduleStatus.ACTIVE,
        next_at=None if draft.error else draft.timing.first_after(now),
    )


def _check(draft: ScheduleDraft) -> None:
    try:
        size = byte_size(draft.payload)
    except (TypeError, ValueError) as error:
        raise ScheduleInvalid(Phrase("The input of a schedule must be JSON: {error}", error=error)) from error
    if size > MAX_PAYLOAD_BYTES:
        raise ScheduleInvalid(Phrase("The input of a schedule has at most {limit} bytes.", limit=MAX_PAYLOAD_BYTES))


def _check_room(owner_id: int | None) -> None:
    limit = schedule_settings.per_user
    if owner_id is None or limit <= 0:
        return
    lock_owner(owner_id)
    kept = Schedule.objects.filter(owner_id=owner_id).exclude(status=ScheduleStatus.ENDED)
    if kept.order_by()[limit - 1 : limit].exists():
        raise SchedulesFull(Phrase("You can have {limit} schedules. Cancel some first.", limit=limit))


def check_shortest(timing: Timing) -> None:
    """Refuse times that are too close together for what people and models create. Errors: `ScheduleInvalid`."""
    shortest = schedule_settings.shortest_seconds
    if timing.shortest_seconds < shortest:
        raise ScheduleInvalid(Phrase("A schedule runs every {seconds} seconds at most.", seconds=shortest))


def _fingerprint(draft: ScheduleDraft) -> str:
    same = draft.payload if draft.identity is None else draft.identity
    function = draft.function.partition(":")[0]  # which member of a family runs it follows from the input
    return fingerprint([draft.timing.kind.value, draft.timing.spec, draft.timing.zone, function, same])


@transaction.atomic
def cancel_schedule(schedule_id: str) -> bool:
    """Delete a schedule with the list of its runs. False where there is none.

    A run that goes on goes on; one that no worker has taken, for instance as none has its method, is stopped.
    """
    waiting = ScheduleRun.objects.filter(schedule_id=schedule_id, fiber__status=FiberStatus.PENDING)
    for fiber_id in list(waiting.order_by("fiber_id").values_list("fiber_id", flat=True)):
        cancel_fiber(fiber_id, reason=CANCELLED, only_at_rest=True)
    deleted, _rows = Schedule.objects.filter(pk=schedule_id).delete()
    return deleted > 0


def forget_schedules_of(scopes: Sequence[str]) -> None:
    """Delete the schedules of what is deleted, in its transaction, and stop what they have begun."""
    begun = ScheduleRun.objects.filter(schedule__scope__in=scopes).exclude(fiber__status__in=TERMINAL)
    for fiber_id in list(begun.order_by("fiber_id").values_list("fiber_id", flat=True)):
        cancel_fiber(fiber_id, reason="deleted")
    Schedule.objects.filter(scope__in=scopes).delete()


def pause_schedule(schedule_id: str) -> bool:
    """Hold a schedule. False where it is not active."""
    return bool(
        Schedule.objects.filter(pk=schedule_id, status__in=sources(ScheduleEvent.PAUSE)).update(
            status=advance(ScheduleStatus.ACTIVE, ScheduleEvent.PAUSE), revision=F("revision") + 1, updated_at=Now()
        )
    )


def resume_schedule(schedule_id: str) -> bool:
    """Arm a schedule again: at its next times, or at the instant it had if it is due once. False where it is not held.

    Errors: `ScheduleInvalid` where it is broken still.
    """
    schedule = _get(schedule_id)
    if schedule.status not in sources(ScheduleEvent.RESUME):
        return False
    now = database_now()
    next_at = schedule.next_at
    if schedule.timing.is_repeating or next_at is None:
        next_at = schedule.timing.first_after(now)
    return _change(schedule, ScheduleEvent.RESUME, next_at=next_at, error="")


def edit_schedule(schedule_id: str, timing: Timing | None = None, **columns: Any) -> Schedule:
    """Change a schedule's times, or columns such as `title` and `payload`; one that is active is armed anew.

    **Errors:** `ScheduleNotFound`; `ScheduleInvalid`.
    """
    for _ in range(TRIES):
        schedule = _get(schedule_id)
        changed = dict(columns)
        if timing is not None and timing != schedule.timing:
            now = database_now()
            timing.check_ahead(now)
            changed |= {
                "kind": timing.kind.value,
                "spec": timing.spec,
                "zone": timing.zone,
                "next_at": timing.first_after(now),
                "error": "",
                "fingerprint": None,  # it is not what was stored once any more
            }
            moved = _change(schedule, ScheduleEvent.EDIT, **changed)
        else:
            moved = not changed or _keep(schedule, changed)
        if moved:
            return _get(schedule_id)
    raise ScheduleInvalid("The schedule was changed elsewhere meanwhile. Look at it again.")


def run_now(schedule_id: str) -> Fiber:
    """Start the schedule's function now, besides its times, whatever its status.

    **Errors:** `ScheduleNotFound`; `SchedulesFull` for a user who asks for it too often.
    """
    schedule = _get(schedule_id)
    with transaction.atomic():
        _check_tests(schedule)
        key = f"schedule:{schedule.pk}:{new_id('test')}"
        return start_run(schedule, database_now(), key, is_test=True)


def _check_tests(schedule: Schedule) -> None:
    if schedule.owner_id is None:
        return
    lock_owner(schedule.owner_id)
    lately = ScheduleRun.objects.filter(
        schedule__owner_id=schedule.owner_id, is_test=True, created_at__gt=Now() - timedelta(minutes=1)
    )
    if lately.order_by()[TESTS_PER_MINUTE - 1 : TESTS_PER_MINUTE].exists():
        raise SchedulesFull(Phrase("You can test {limit} schedules a minute. Wait a moment.", limit=TESTS_PER_MINUTE))


def broken_schedules() -> list[tuple[str, str]]:
    """Ids of the schedules that are broken, and why; those that broke last first."""
    broken = Schedule.objects.filter(status=ScheduleStatus.BROKEN).order_by("-updated_at", "-pk")
    return list(broken.values_list("pk", "error"))


def upcoming(schedule: Schedule) -> list[datetime]:
    """The next times of a schedule; none for one that is not active."""
    return times_from(schedule, database_now())


def times_from(schedule: Schedule, now: datetime) -> list[datetime]:
    """The same for several schedules at one time of the database's clock."""
    if schedule.status != ScheduleStatus.ACTIVE or schedule.next_at is None:
        return []
    try:
        return schedule.timing.upcoming(now, schedule.next_at)
    except ScheduleInvalid:  # its zone is gone: the sweep will say so
        return [schedule.next_at]


def _change(schedule: Schedule, event: ScheduleEvent, **columns: Any) -> bool:
    try:
        status = advance(ScheduleStatus(schedule.status), event)
    except IllegalMove:
        return False
    found = Schedule.objects.filter(pk=schedule.pk, status=schedule.status, revision=schedule.revision)
    return bool(found.update(status=status, revision=F("revision") + 1, updated_at=Now(), **columns))


def _keep(schedule: Schedule, columns: dict[str, Any]) -> bool:
    found = Schedule.objects.filter(pk=schedule.pk, revision=schedule.revision)
    return bool(found.update(revision=F("revision") + 1, updated_at=Now(), **columns))


def _get(schedule_id: str) -> Schedule:
    found = Schedule.objects.filter(pk=schedule_id).first()
    if found is None:
        raise ScheduleNotFound(Phrase("There is no schedule “{id}”.", id=schedule_id))
    return found
