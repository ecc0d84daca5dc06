"""Runs what a conversation's schedule has due: a method of the agent, a declared task, or a prompt.

A prompt becomes an ordinary turn whose idempotency key is the occurrence's: whatever crashes, it is asked once. It
counts as a message of the owner's, and waits while as many were sent as may be. A method runs at least once, with the
same key again. A worker takes only runs whose agent, and whose method, it has.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from django.db import transaction

from chat.agent import declared
from chat.agent.base import Agent, InstanceKey
from chat.agent.callables import find_callable
from chat.agent.invocation import call
from chat.agent.think import Think
from chat.agent.values.schedules import RETRY, Occurrence
from chat.background.rows import is_inherited
from chat.background.runs import arguments_taken
from chat.errors import AgentNotFound, CallRefused, QuotaExceeded
from chat.instances.rows import key_of
from chat.models import AgentInstance, NoticeKind, Turn, TurnTrigger
from chat.push.starting import note
from chat.runtime import submissions
from chat.schedules.outcomes import LEFT_OUT_REASON
from chat.turns.background.declared_schedules import declared_tasks, reconcile
from chat.turns.policies import asked_by_owner
from chat.user_code.call_hook import AgentCodeFailed, notify_hook, user_code_boundary
from fibers.context import FiberContext
from fibers.core.schedules.timing import ScheduleKind
from fibers.core.states import METHOD_MISSING, FiberStatus
from fibers.errors import Cancelled, Failed
from fibers.models.schedules import Schedule
from fibers.schedules.services import CANCELLED, cancel_schedule
from fibers.waits import Wait
from sessions_app.core.messages.shapes import NewMessage
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.retry import RetryPolicy
from thinkproject.kernel.zones import in_zone

PACE_SECONDS: Final = 20.0
PACE_TRIES: Final = 30
"""A prompt waits so often, and so long each time, while its owner has sent as many messages as may be sent."""


def callable_members() -> tuple[str, ...]:
    """The parts after `chat.scheduled_run:` of the names that this process can run."""
    return _members(tuple(declared.classes.items()))


@lru_cache(maxsize=4)
def _members(classes: tuple[tuple[str, type[Any]], ...]) -> tuple[str, ...]:
    return tuple(
        member for route, each in classes for member in (route, *(f"{route}.{name}" for name in _callbacks_of(each)))
    )


def _callbacks_of(agent_class: type[Any]) -> list[str]:
    """The methods of a class that a schedule may call, without those that every agent has."""
    names = (name for name in dir(agent_class) if not name.startswith("_") and not is_inherited(agent_class, name))
    return [name for name in names if callable(getattr(agent_class, name, None))]


async def run_scheduled(context: FiberContext, make_agent: Callable[[InstanceKey], Agent]) -> JSONValue:
    """Run one occurrence. Result: `{"turn_id"}` of a prompt.

    Errors: `Failed` with the code of what went wrong; `Cancelled` where the schedule or its conversation is gone.
    """
    try:
        return await _run_occurrence(context, make_agent)
    except Failed as error:
        if error.is_final or context.retries >= context.max_retries:
            await db(_note_failed, context)
        raise


async def _run_occurrence(context: FiberContext, make_agent: Callable[[InstanceKey], Agent]) -> JSONValue:
    facts = context.payload["schedule"]
    schedule, instance = await db(_rows, str(facts["id"]))
    if schedule is None or instance is None:
        await db(cancel_schedule, str(facts["id"]))
        raise Cancelled(reason=CANCELLED)
    work: JSONObject = schedule.payload
    occurrence = Occurrence(
        schedule_id=schedule.pk,
        key=str(facts["key"]),
        due=datetime.fromisoformat(facts["due"]),
        is_test=bool(facts["is_test"]),
    )
    try:
        return await _run(context, (schedule, instance), work, occurrence, make_agent)
    except AgentCodeFailed as error:  # what was raised is in the log; people see that the method failed
        raise Failed(error.code, f"{error.method}(): {error.message}", is_final=True) from error
    except AgentNotFound as error:
        raise Failed(error.code, error.message) from error


async def _run(
    context: FiberContext,
    of: tuple[Schedule, AgentInstance],
    work: JSONObject,
    occurrence: Occurrence,
    make_agent: Callable[[InstanceKey], Agent],
) -> JSONValue:
    schedule, instance = of
    if schedule.declaration is None and "prompt" in work:
        return await _submit_in_time(context, partial(_submit, schedule, instance, str(work["prompt"]), occurrence))
    agent = make_agent(key_of(instance))
    await notify_hook(agent, "on_start")
    if "callable" in work:
        await _call_as_client(agent, str(work["callable"]), list(work["arguments"]))
        return None
    if schedule.declaration is None:
        await _call(agent, str(work["method"]), work.get("payload"), occurrence, retry=_retry(work))
        return None
    assert isinstance(agent, Think), "only classes that chat declare tasks"
    await reconcile(agent)
    task = (await declared_tasks(agent)).get(schedule.declaration)
    if task is None or task.timing is None:
        raise Cancelled(reason=CANCELLED)
    if task.prompt:
        return await _submit_in_time(context, partial(_submit, schedule, instance, task.prompt, occurrence))
    await _call(agent, task.handler, occurrence, retry=RETRY)
    return None


async def _call(agent: Agent, method: Any, *args: Any, retry: RetryPolicy) -> None:
    """Call a method of the agent, or a function, as often as the policy says. Errors: what it raised last."""
    function = getattr(agent, method, None) if isinstance(method, str) else method
    name = method if isinstance(method, str) else getattr(method, "__name__", "handler")
    if not callable(function):
        raise Failed(METHOD_MISSING, f"{type(agent).__name__} has no method {name!r}", is_final=True)
    try:
        await _try(name, partial(call_user_code, function, *arguments_taken(function, *args)), retry)
    except ThinkError as error:
        on_error = getattr(agent, "on_error", None)
        if on_error is not None:
            with user_code_boundary("on_error"):
                await call_user_code(on_error, error.original if isinstance(error, AgentCodeFailed) else error)
        raise


async def _call_as_client(agent: Agent, name: str, arguments: list[JSONValue]) -> None:
    """Call a callable as a client would. Errors: `Failed` where it is gone; what it raised last."""
    try:
        info = find_callable(type(agent), name)
    except CallRefused as error:
        raise Failed(METHOD_MISSING, error.message, is_final=True) from error
    await _try(info.attribute, partial(call, agent, info, arguments), RETRY)


async def _try(name: str, attempt: Callable[[], Awaitable[Any]], retry: RetryPolicy) -> None:
    for failures in range(1, retry.attempts + 1):
        try:
            with user_code_boundary(name):
                await attempt()
        except ThinkError:
            if failures == retry.attempts:
                raise
            # Nothing secret hangs on the number.
            await asyncio.sleep(retry.delay_seconds(failures, jitter=random.random()))  # noqa: S311
        else:
            return


def _retry(work: JSONObject) -> RetryPolicy:
    stored = work.get("retry")
    return RETRY if stored is None else RetryPolicy(jitter_share=1.0, **stored)


def note_ended(ended: JSONObject) -> None:
    """Note for the owner that a run has failed which did not see its end. `ended`: what follows a fiber gets. Sync."""
    if ended["status"] in {FiberStatus.FAILED, FiberStatus.INTERRUPTED}:
        with transaction.atomic():
            _note(str(ended["fiber_id"]), str(ended["payload"]["schedule"]["id"]))


def _note_failed(context: FiberContext) -> None:
    with context.fenced():
        _note(context.fiber_id, str(context.payload["schedule"]["id"]))


def _note(fiber_id: str, schedule_id: str) -> None:
    schedule, instance = _rows(schedule_id)
    if schedule is not None and instance is not None and instance.owner_id is not None:
        note(
            NoticeKind.SCHEDULE,
            fiber_id,
            instance.owner_id,
            user_id=instance.owner_id,
            schedule_id=schedule.pk,
            instance_id=instance.pk,
        )


def _rows(schedule_id: str) -> tuple[Schedule | None, AgentInstance | None]:
    schedule = Schedule.objects.filter(pk=schedule_id).first()
    return schedule, None if schedule is None else AgentInstance.objects.filter(pk=schedule.scope).first()


async def _submit_in_time(context: FiberContext, submit: Callable[[], JSONValue]) -> JSONValue:
    """Ask the agent once its owner may send a message again. Parked meanwhile. Errors: what admission raises."""
    try:
        return await db(submit)
    except QuotaExceeded:
        waits = [Wait(key=f"pace-{number}", kind="quota", seconds=PACE_SECONDS) for number in range(PACE_TRIES)]
        for wait in waits:
            if await context.recorded(wait.step_key) is None:
                await context.wait(wait)  # parks
        raise


def _submit(schedule: Schedule, instance: AgentInstance, prompt: str, occurrence: Occurrence) -> JSONValue:
    """Ask the agent, unless the turn of the occurrence before has not ended. Errors: what admission raises."""
    if not schedule.can_overlap and not occurrence.is_test and _has_open_turn(instance.pk, occurrence):
        raise Cancelled(reason=LEFT_OUT_REASON)
    facts: JSONObject = {"id": schedule.pk, "due": occurrence.due.isoformat(), "title": schedule.title}
    message: NewMessage = {
        "role": "user",
        "parts": [{"type": "text", "text": prompt}],
        "metadata": {"schedule": facts},
    }
    has_zone = schedule.kind in {ScheduleKind.CRON, ScheduleKind.INSTANT}
    with asked_by_owner(), in_zone(schedule.zone if has_zone else ""):
        turn = submissions.submit(
            key_of(instance), [message], idempotency_key=occurrence.key, metadata={"schedule": facts}
        )
    return {"turn_id": turn.id}


def _has_open_turn(instance_id: str, occurrence: Occurrence) -> bool:
    asked = Turn.objects.filter(
        instance_id=instance_id,
        finished_at=None,
        trigger=TurnTrigger.PROGRAM,
        idempotency_key__startswith=f"schedule:{occurrence.schedule_id}:",
    )
    return asked.exclude(idempotency_key=occurrence.key).exists()
