"""The tools with which a model lists, creates and cancels schedules of its conversation, for classes that allow it.

A person approves each one that it creates, and reads what will be asked and when.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from chat.agent.methods.schedules import checked_prompt
from chat.agent.values.schedules import ScheduleView, Work
from chat.schedules.service import InstanceSchedules
from chat.turns.tools.providers import ToolRequest
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.errors import ScheduleInvalid
from fibers.schedules.services import check_shortest
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.zones import current_zone
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.toolset import ToolSource

CREATE: Final = "create_schedule"
LIST: Final = "list_schedules"
CANCEL: Final = "cancel_schedule"
SHOWN_TIMES: Final = 3
TIMEOUT_SECONDS: Final = 30.0


class CreateInput(BaseModel):
    """Have yourself asked later, in this conversation; a person approves it.

    Give exactly one of at, in_minutes, every_minutes and cron. Ask for the zone if neither it nor the user's is known.
    """

    model_config = ConfigDict(extra="forbid")

    prompt: Annotated[str, Field(description="What you will be asked then, complete in itself.", max_length=20_000)]
    title: Annotated[str, Field(description="A few words for people.", max_length=100)] = ""
    at: Annotated[str | None, Field(description="Once, as 2026-05-01T09:00.")] = None
    in_minutes: Annotated[float | None, Field(description="Once, from now.")] = None
    every_minutes: Annotated[float | None, Field(description="Again and again.")] = None
    cron: Annotated[str | None, Field(description="minute hour day month weekday")] = None
    zone: Annotated[str, Field(description="Of at and cron, as Europe/Berlin; empty: the user's.")] = ""


class ListInput(BaseModel):
    """List the schedules of this conversation."""

    model_config = ConfigDict(extra="forbid")


class CancelInput(BaseModel):
    """Cancel a schedule of this conversation."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(description="As listed.")]


async def tools_of_schedules(request: ToolRequest) -> ToolSource:
    """Give them; none for a class without `schedule_tools`, and none where a member asks: plans run as the owner's."""
    instance = request.agent.instance
    return schedule_tools(instance.schedules) if request.agent.schedule_tools and instance.asked_by is None else ()


def schedule_tools(schedules: InstanceSchedules) -> list[Tool]:
    """Make the three tools over a conversation's schedules."""

    async def create(context: ToolContext, **given: Any) -> JSONObject:  # noqa: ARG001 - all tools get it
        timing, work = wanted(given)
        # A call that was cut runs again: it finds what it stored.
        made = await schedules.add(timing, work, is_once=True, title=str(given.get("title", "")), created_by="model")
        return listed(made)

    async def list_all(context: ToolContext) -> list[JSONObject]:  # noqa: ARG001 - as above
        return [listed(view) for view in await schedules.list_all()]

    async def cancel(context: ToolContext, id: str) -> JSONObject:  # noqa: A002, ARG001 - as above; the model's name
        return {"cancelled": await schedules.remove(id)}

    return [
        _tool(
            CREATE,
            _("Schedule a task"),
            CreateInput,
            create,
            needs_approval=True,
            approval_text=approval_text,
            # By this process's clock; what is stored is checked by the database's.
            check=lambda given, _context: wanted(given)[0].check_ahead(datetime.now(UTC)),
        ),
        _tool(LIST, _("List schedules"), ListInput, list_all, read_only=True),
        _tool(CANCEL, _("Cancel a schedule"), CancelInput, cancel),
    ]


def wanted(given: JSONObject) -> tuple[Timing, Work]:
    """The times and the work that a call asks for. Errors: `ScheduleInvalid`, in words that help the model."""
    asked = CreateInput(**given)
    timing = timing_asked(asked)
    check_shortest(timing)
    return timing, Work(prompt=checked_prompt(asked.prompt))


def timing_asked(asked: CreateInput) -> Timing:
    """The times that a model asked for, in the person's time zone where it names none.

    Errors: `ScheduleInvalid`, in words that help it.
    """
    zone = asked.zone.strip() or current_zone()
    times = [each for each in (asked.at, asked.in_minutes, asked.every_minutes, asked.cron) if each is not None]
    if len(times) != 1:
        raise ScheduleInvalid("Give exactly one of at, in_minutes, every_minutes and cron.")
    if asked.cron is not None:
        return Timing.cron(asked.cron, zone)
    if asked.every_minutes is not None:
        return Timing.every(asked.every_minutes * 60)
    if asked.in_minutes is not None:
        return Timing.delay(asked.in_minutes * 60)
    try:
        instant = datetime.fromisoformat(str(asked.at))
    except ValueError as error:
        raise ScheduleInvalid("Write the time as 2026-05-01T09:00.") from error
    return Timing.at(instant, zone)


def approval_text(given: JSONObject) -> str:
    """The question to a person: what will be asked and when first, in the schedule's zone and in the person's own."""
    try:
        asked = CreateInput(**given)
        timing = timing_asked(asked)
    except (ScheduleInvalid, ValueError) as error:
        return _("This cannot be scheduled: %(error)s") % {"error": error}
    # What is shown is near enough by this process's clock; what is stored is by the database's.
    times = timing.upcoming(datetime.now(UTC), count=SHOWN_TIMES)
    more = " …" if timing.is_repeating else ""
    own = current_zone()
    zone = own if own and not _has_own_zone(timing) else timing.zone
    values = {"prompt": asked.prompt, "times": _shown(times, zone) + more, "zone": zone}
    if not own or _is_same_time(times, zone, own):
        return _("Ask “%(prompt)s” at %(times)s (%(zone)s)?") % values
    text = _("Ask “%(prompt)s” at %(times)s (%(zone)s)? For you that is %(own_times)s (%(own_zone)s).")
    return text % {**values, "own_times": _shown(times, own) + more, "own_zone": own}


def _has_own_zone(timing: Timing) -> bool:
    """Whether the zone is part of what was asked for; what comes after a number of seconds is in none."""
    return timing.kind in {ScheduleKind.INSTANT, ScheduleKind.CRON}


def _is_same_time(times: Sequence[datetime], zone: str, own: str) -> bool:
    """Whether clocks of both zones show the same at all of these times."""
    return all(
        time.astimezone(ZoneInfo(zone)).utcoffset() == time.astimezone(ZoneInfo(own)).utcoffset() for time in times
    )


def _shown(times: Sequence[datetime], zone: str) -> str:
    return "; ".join(date_format(time.astimezone(ZoneInfo(zone)), "DATETIME_FORMAT") for time in times)


def listed(view: ScheduleView) -> JSONObject:
    """A schedule as a model reads it. Instants are in the schedule's zone."""
    next_at = None if view.next_at is None else view.next_at.astimezone(ZoneInfo(view.zone))
    shown: JSONObject = {
        "id": view.id,
        "title": view.title,
        "kind": view.kind.value,
        "times": view.spec,
        "zone": view.zone,
        "status": view.status.value,
        "next": None if next_at is None else (next_at - timedelta(microseconds=next_at.microsecond)).isoformat(),
    }
    if view.prompt:
        shown["prompt"] = view.prompt
    return shown


def _tool(name: str, title: str, arguments: type[BaseModel], function: Any, **options: Any) -> Tool:
    schema = json_schema(arguments)
    return Tool(
        name=name,
        description=str(schema.pop("description")),
        input_schema=schema,
        function=function,
        arguments=arguments,
        context_parameter="context",
        title=title,
        timeout_seconds=TIMEOUT_SECONDS,
        **options,
    )
