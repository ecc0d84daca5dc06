"""Schedules that people make and edit, over the API and in the admin: what they may give, and what they may change.

People may pause everything, and change what they or a model made. What the agent's class declares stays as it declares.
"""

from typing import Any, Final

from chat.agent.methods.schedules import checked_prompt
from chat.agent.values.schedules import Work
from chat.background.rows import MAX_PAYLOAD_BYTES
from chat.models import AgentInstance
from chat.schedules.service import draft_of, find_schedule
from fibers.core.schedules.timing import ScheduleKind, Timing, read_instant
from fibers.errors import ScheduleInvalid
from fibers.models.schedules import Schedule
from fibers.schedules import services
from thinkproject.kernel.jsonvalue import JSONValue, byte_size
from thinkproject.kernel.phrases import Phrase

CODE: Final = frozenset({"code", "declaration"})


def make_schedule(
    instance: AgentInstance, timing: Timing, *, title: str, prompt: str | None, method: str | None, arguments: Any
) -> Schedule:
    """Have a conversation asked a prompt, which is an ordinary turn, or a method for clients run, at times to come.

    Errors: `SchedulesFull`, and those of `draft_of`.
    """
    work = _work(prompt, method, arguments)
    draft = draft_of(instance, timing, work, title=title.strip(), created_by="person")
    return services.create_schedule(draft)[0]


def change_schedule(
    schedule: Schedule, *, title: str | None = None, prompt: str | None = None, timing: Timing | None = None
) -> Schedule:
    """Change what is given of a schedule; `None` stays. Errors: `ScheduleInvalid` for one that `can_edit` excludes."""
    columns: dict[str, Any] = {}
    if title is not None:
        columns["title"] = title.strip()
    if prompt is not None:
        columns["payload"] = {**(schedule.payload or {}), "prompt": checked_prompt(prompt)}
    if columns or timing is not None:
        if not can_edit(schedule):
            raise ScheduleInvalid("This schedule can only be paused: it runs a method, or code made it.")
        services.edit_schedule(schedule.pk, timing, **columns)
    return find_schedule(schedule.scope, schedule.pk)


def can_edit(schedule: Schedule) -> bool:
    """Whether people may change more of it than whether it is paused."""
    return schedule.created_by not in CODE and "prompt" in (schedule.payload or {})


def read_timing(kind: str, spec: str, zone: str = "") -> Timing:
    """The times that a person gave: a kind, and its text. Errors: `ScheduleInvalid`."""
    try:
        timing = _timing(ScheduleKind(kind), spec, zone)
    except ValueError as error:
        raise ScheduleInvalid(Phrase("“{spec}” is no time of this kind.", spec=spec)) from error
    services.check_shortest(timing)
    return timing


def _timing(kind: ScheduleKind, spec: str, zone: str) -> Timing:
    if kind is ScheduleKind.CRON:
        return Timing.cron(spec, zone)
    if kind is ScheduleKind.INSTANT:
        return Timing.at(read_instant(spec), zone)
    return Timing.every(float(spec)) if kind is ScheduleKind.INTERVAL else Timing.delay(float(spec))


def _work(prompt: str | None, method: str | None, arguments: list[JSONValue]) -> Work:
    """Errors: `ScheduleInvalid`."""
    if (prompt is None) == (method is None):
        raise ScheduleInvalid("A schedule has a method or a prompt, one of the two.")
    if method is not None:
        if byte_size(arguments) > MAX_PAYLOAD_BYTES:
            raise ScheduleInvalid(Phrase("The arguments have at most {limit} bytes.", limit=MAX_PAYLOAD_BYTES))
        return Work(callback=method, arguments=tuple(arguments))
    if arguments:
        raise ScheduleInvalid("Arguments belong to a method, not to a prompt.")
    return Work(prompt=checked_prompt(prompt or ""))
