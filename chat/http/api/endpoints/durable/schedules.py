"""API operations on the schedules of a conversation: prompts of people, and what code and models made.

People may pause everything, and change what they or a model made. What the agent's class declares stays as it declares.
"""

from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Status

from chat.access.auth import open_instance
from chat.agent.registry import get_agent_class
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.schedules import (
    ScheduleIn,
    ScheduleOut,
    SchedulePatch,
    ScheduleRunOut,
    ScheduleTimesOut,
    TimesIn,
    run_out,
    schedule_out,
)
from chat.models import AgentInstance
from chat.schedules.editing import can_edit, change_schedule, make_schedule, read_timing
from chat.schedules.outcomes import OccurrenceView, last_runs, runs_of
from chat.schedules.service import delete_schedule, find_schedule, schedules_of
from fibers.core.schedules.timing import Timing
from fibers.models.schedules import Schedule
from fibers.schedules import services
from fibers.schedules.clock import database_now
from thinkproject.kernel.aio import db

router = Router(tags=["schedules"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])
_CHANGES = declares(403, 404, 409, 429)
_LIST, _ONE = "/instances/{instance_id}/schedules", "/instances/{instance_id}/schedules/{schedule_id}"


@router.get(_LIST, response=list[ScheduleOut], operation_id="list_schedules")
async def schedules_list(request: HttpRequest, instance_id: str) -> list[ScheduleOut]:
    """The schedules of a conversation, the next one first, those that ended last."""
    return await db(lambda: _shown(schedules_of(_instance(request, instance_id).pk, with_ended=True)))


@router.post(_LIST, response=ScheduleOut, operation_id="create_schedule", openapi_extra=_CHANGES)
async def schedules_create(request: HttpRequest, instance_id: str, data: ScheduleIn) -> ScheduleOut:
    """Have a conversation asked a prompt, which is an ordinary turn, or a method run, at times to come."""

    def create() -> ScheduleOut:
        instance = _instance(request, instance_id)
        get_agent_class(instance.agent)  # one that is gone is said first
        timing, given = _times(data.times), data.dict(exclude={"times"})
        return _shown([make_schedule(instance, timing, **given)])[0]

    return await db(create)


@router.patch(_ONE, response=ScheduleOut, operation_id="change_schedule", openapi_extra=_CHANGES)
async def schedules_change(
    request: HttpRequest, instance_id: str, schedule_id: str, data: SchedulePatch
) -> ScheduleOut:
    """Pause or resume a schedule, or change its prompt and times."""
    return await db(lambda: _shown([_change(_own(request, instance_id, schedule_id), data)])[0])


@router.delete(_ONE, response={204: None}, operation_id="delete_schedule", openapi_extra=_CHANGES)
async def schedules_delete(request: HttpRequest, instance_id: str, schedule_id: str) -> object:
    """Delete a schedule with the list of its runs. A run that goes on is not stopped."""
    await db(lambda: delete_schedule(_own(request, instance_id, schedule_id)))
    return Status(204, None)


@router.post(_ONE + "/run", response=ScheduleRunOut, operation_id="run_schedule", openapi_extra=_CHANGES)
async def schedules_run(request: HttpRequest, instance_id: str, schedule_id: str) -> ScheduleRunOut:
    """Run a schedule now, besides its times, to test it."""

    def run() -> ScheduleRunOut:
        schedule = _own(request, instance_id, schedule_id)
        services.run_now(schedule.pk)
        return run_out(runs_of(schedule.pk)[0])

    return await db(run)


@router.get(_ONE + "/runs", response=list[ScheduleRunOut], operation_id="list_schedule_runs")
async def schedules_runs(request: HttpRequest, instance_id: str, schedule_id: str) -> list[ScheduleRunOut]:
    """The last runs of a schedule, newest first, and how they went."""
    return await db(lambda: [run_out(run) for run in runs_of(_own(request, instance_id, schedule_id).pk)])


@router.post("/schedules/preview", response=ScheduleTimesOut, operation_id="preview_schedule", openapi_extra=_CHANGES)
async def schedules_preview(request: HttpRequest, data: TimesIn) -> ScheduleTimesOut:  # noqa: ARG001 - all get it
    """The next times that a schedule would have. Nothing is stored."""
    timing = _times(data)
    now = await db(database_now)
    timing.check_ahead(now)
    return ScheduleTimesOut(next=timing.upcoming(now))


def _times(data: TimesIn) -> Timing:
    return read_timing(data.kind, data.spec, data.zone or "")


def _instance(request: HttpRequest, instance_id: str) -> AgentInstance:
    return open_instance(caller_of(request).user, instance_id)


def _own(request: HttpRequest, instance_id: str, schedule_id: str) -> Schedule:
    return find_schedule(_instance(request, instance_id).pk, schedule_id)


def _change(schedule: Schedule, data: SchedulePatch) -> Schedule:
    timing = None if data.times is None else _times(data.times)
    change_schedule(schedule, title=data.title, prompt=data.prompt, timing=timing)
    if data.paused is not None:
        (services.pause_schedule if data.paused else services.resume_schedule)(schedule.pk)
    return find_schedule(schedule.scope, schedule.pk)


def _shown(schedules: list[Schedule]) -> list[ScheduleOut]:
    runs = last_runs(schedules)
    now = database_now()
    return [_out(schedule, runs.get(schedule.pk), now) for schedule in schedules]


def _out(schedule: Schedule, run: OccurrenceView | None, now: datetime) -> ScheduleOut:
    times = services.times_from(schedule, now)
    return schedule_out(schedule, run, times=times, can_edit=can_edit(schedule))
