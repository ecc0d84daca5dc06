"""API schemas of schedules."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from chat.http.api.schemas.common import Input, Title
from chat.schedules.outcomes import OccurrenceView, RunStatus
from fibers.models.schedules import Schedule
from thinkproject.kernel.filling import filled

Kind = Literal["delay", "instant", "cron", "interval"]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00-\x20]+$")]
Spec = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]+$")]
Method = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Arguments = Annotated[list[Any], Field(max_length=50)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]


class TimesIn(Input):
    """When: `spec` is seconds (`delay`, `interval`), an ISO date and time (`instant`), or five fields (`cron`).

    `zone` is that of cron and of instants without an offset, which need one: an IANA name.
    """

    kind: Kind
    spec: Spec
    zone: Zone | None = None


class ScheduleIn(Input):
    """A prompt that a conversation is asked, or a method that its agent runs, at times to come: one of the two.

    `method`: what clients may call, by the name they call it; `arguments` are checked like those of a client's call.
    Agents that do not chat have methods only.
    """

    prompt: Prompt | None = None
    method: Method | None = None
    arguments: Arguments = []
    times: TimesIn
    title: Title = ""


class SchedulePatch(Input):
    """Changes of a schedule; what is left out stays. Of those that code made, only `paused` can be changed."""

    paused: bool | None = None
    title: Title | None = None
    prompt: Prompt | None = None
    times: TimesIn | None = None


class ScheduleTimesOut(Schema):
    """The next times that a schedule would have: five, or one for what is due once. In UTC."""

    next: list[datetime]


class ScheduleRunOut(Schema):
    """One run. `left_out`: the one before had not ended. `turn_id`: of a prompt, whose status is the turn's.

    `due_at`: when it was to begin; `test`: a person asked for it. `error`: a sentence, where it failed, or where it
    waits as no worker has its method.
    """

    id: str
    due_at: datetime
    started_at: datetime
    finished_at: datetime | None
    status: RunStatus
    test: bool
    error: str
    turn_id: str | None


class ScheduleOut(Schema):
    """A schedule of a conversation. `prompt` is null where it runs a `method` of the agent.

    `created_by`: `person`, `model`, `code`, or `declaration` for what the agent's class declares. `next`: its next
    times in UTC, none while it is not active. `skipped`: runs left out in a row. `can_edit`: whether you may change
    more than whether it is paused; `can_delete`: whether you may delete it.
    """

    id: str
    title: str
    kind: Kind
    spec: str
    zone: str
    prompt: str | None
    method: str | None
    status: Literal["active", "paused", "ended", "broken"]
    error: str
    next: list[datetime]
    last_at: datetime | None
    skipped: int
    created_by: str
    created_at: datetime
    can_edit: bool
    can_delete: bool
    last_run: ScheduleRunOut | None


def run_out(run: OccurrenceView) -> ScheduleRunOut:
    """A run of a schedule, as the API gives it."""
    return filled(ScheduleRunOut, run, test=run.is_test)


def schedule_out(
    schedule: Schedule, run: OccurrenceView | None, *, times: list[datetime], can_edit: bool
) -> ScheduleOut:
    """A schedule, as the API gives it. `times`: its next ones; `run`: its last one."""
    payload = schedule.payload or {}
    return filled(
        ScheduleOut,
        schedule,
        prompt=payload.get("prompt"),
        method=payload.get("method") or payload.get("callable") or payload.get("task"),
        next=times,
        can_edit=can_edit,
        can_delete=schedule.declaration is None,
        last_run=None if run is None else run_out(run),
    )
