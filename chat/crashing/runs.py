"""Play a developer's conversation once, in this process, with a crash where the course says."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from chat.agent.base import Agent, InstanceKey
from chat.core.durable_names import TURN_FIBER
from chat.core.model.language_model import LanguageModel
from chat.crashing.outcome import CrashOutcome, counted, normalised, stream_faults
from chat.crashing.points import Course
from chat.errors import CallNotFound
from chat.instance.handle import AgentHandle
from chat.instances.rows import find_instance
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.streams.reader import read
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.intake import Submit
from chat.turns.admission.tool_answers import Reply
from chat.turns.state.status import turn_status
from fibers.core.states import FiberStatus
from fibers.execution.own_worker import first_claimable, running
from fibers.models import Fiber
from fibers.testing import has_crashed, is_anything_open, recover_crashed
from sessions_app.core.messages.shapes import Message, NewMessage
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue, load
from tools_app.calls.services import Actor
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

LOOK_SECONDS = 0.02
SWEEP_SECONDS = 0.2
"""How soon waits that have run out are found; what has crashed is found at the next look."""
ROUNDS = 100
"""Answers from outside that one conversation can need; more of them are a loop."""

Act = str | NewMessage | Callable[[AgentHandle], Awaitable[Any]]
"""A message of the person, or what code does with the agent between two messages."""


@dataclass(frozen=True, kw_only=True)
class CrashPlay:
    """A conversation as its author wrote it down. See `chat.crashing.everywhere` for the fields."""

    agent_class: type[Agent]
    make_model: Callable[[], LanguageModel]
    acts: Sequence[Act]
    effects: Callable[[], Iterable[Any]]
    make_user: Callable[[str], Any]
    approve: bool = True
    client_results: Mapping[str, JSONValue] = field(default_factory=dict)
    waits: Mapping[str, JSONValue] = field(default_factory=dict)
    seconds: float = 30.0


def scripted(script: str) -> Callable[[], LanguageModel]:
    """A maker of scripted models; each run has one of its own, since they count."""
    return lambda: ScriptedModel(script)


async def played(play: CrashPlay, course: Course, name: str) -> CrashOutcome:
    """Play it in a conversation of its own; returns when nothing moves any more.

    Errors: `TimeoutError` when something still moves after `play.seconds`.
    """
    user = await db(play.make_user, name)
    key = InstanceKey(owner_id=user.pk, agent=play.agent_class.route_name(), name=name)
    before = counted(await db(_all, play.effects))
    with replaced_models(play.make_model()), course.watched():
        async with asyncio.timeout(play.seconds), _working():
            for act in play.acts:
                await _do(key, act)
                await _answered(key, play)
    return await _outcome(key, counted(await db(_all, play.effects)) - before, course)


async def _do(key: InstanceKey, act: Act) -> None:
    if callable(act):
        await act(AgentHandle(key))
        return
    message: Any = {"role": "user", "parts": [{"type": "text", "text": act}]} if isinstance(act, str) else act
    await db(admit, key, TurnRequest(intake=Submit(message=message)))


async def _answered(key: InstanceKey, play: CrashPlay) -> None:
    """Answer what waits for people and clients, until nothing does."""
    for _ in range(ROUNDS):
        await _idle()
        if not await _answer(key, play):
            return
    raise AssertionError(f"after {ROUNDS} answers from outside something still waits for one")


async def _answer(key: InstanceKey, play: CrashPlay) -> bool:
    handle, has_answered = AgentHandle(key), False
    for question in await handle.pending_approvals():
        decide = handle.approve_execution if play.approve else handle.reject_execution
        has_answered |= await decide(question.id)
    for call_id, tool_name in await db(_waiting_calls, key):
        if tool_name in play.client_results:
            reply = Reply(call_id=call_id, output=play.client_results[tool_name])
            replied = await db(reply_to_call, key, reply, Actor(user_id=key.owner_id, via="socket"))
            has_answered |= replied.is_new
    for call_id, wait in await db(_waits, key):
        if wait in play.waits:
            try:
                has_answered |= await handle.answer_wait(call_id, play.waits[wait], wait=wait)
            except CallNotFound:
                continue
    return has_answered


def _waiting_calls(key: InstanceKey) -> list[tuple[str, str]]:
    instance = find_instance(key)
    rows = ToolCallRecord.objects.filter(scope=instance.pk if instance else "", status=CallStatus.WAITING)
    return list(rows.order_by("pk").values_list("call_id", "tool_name"))


def _waits(key: InstanceKey) -> list[tuple[str, str]]:
    """The calls of parked turns and the keys of what they wait for."""
    instance = find_instance(key)
    turns = Turn.objects.filter(instance=instance, fiber__status=FiberStatus.PARKED).select_related("fiber")
    waits = [wait for turn in turns for wait in turn.fiber.waits]
    return [(wait["call_id"], str(wait["key"]).removeprefix(f"{wait['call_id']}:")) for wait in waits]


@asynccontextmanager
async def _working() -> AsyncIterator[None]:
    swept_at = -SWEEP_SECONDS

    def due() -> list[str]:
        """Recover what has died, as a sweep would; what is tried again does not wait for its time."""
        nonlocal swept_at
        if not is_anything_open():
            return []
        if has_crashed() or time.monotonic() - swept_at >= SWEEP_SECONDS:
            swept_at = time.monotonic()
            recover_crashed()
        if _delayed().exists():  # an UPDATE without rows would wait for other writers
            _delayed().update(available_at=Now())
        return first_claimable(Fiber.objects.all())

    async with running(due, LOOK_SECONDS):
        yield


def _delayed() -> Any:
    """Fibers that wait only because they failed or crashed, and turns that wait for further messages."""
    again = Q(attempt__gt=0) | Q(name=TURN_FIBER)
    return Fiber.objects.filter(again, status=FiberStatus.PENDING, available_at__gt=Now())


async def _idle() -> None:
    while await db(_moves):  # noqa: ASYNC110 - rows publish nothing
        await asyncio.sleep(LOOK_SECONDS)


def _moves() -> bool:
    """Whether a fiber runs or may run: one statement, since between two a fiber could pass from one to the other."""
    again = Q(attempt__gt=0) | Q(name=TURN_FIBER) | Q(available_at__lte=Now())
    pending = Fiber.objects.filter(again, status=FiberStatus.PENDING)
    before = Fiber.objects.filter(
        lane=OuterRef("lane"), lane_position__lt=OuterRef("lane_position"), status=FiberStatus.PARKED
    )
    moving = Q(status=FiberStatus.RUNNING) | Q(pk__in=pending.exclude(Exists(before)).values("pk"))
    return Fiber.objects.filter(moving).exists()


def _all(effects: Callable[[], Iterable[Any]]) -> list[Any]:
    return list(effects())


async def _outcome(key: InstanceKey, effects: Any, course: Course) -> CrashOutcome:
    messages = await AgentHandle(key).messages()
    turns = await db(partial(_turns, key))
    faults = await db(_left_running)
    for turn in turns:
        if turn.finished_at is None or turn.fiber.finished_at is None:
            faults.append(f"Turn {turn.position} has no end: its fiber is {turn.fiber.status}.")
            continue
        chunks = [load(record.text) for record in await read(turn.pk)]
        lines = stream_faults(chunks, _answer_of(turn, messages))
        faults += [f"Turn {turn.position}: {line}." for line in lines]
    return CrashOutcome(
        messages=normalised(messages),
        endings=[turn_status(turn.fiber.status, turn.fiber.reason).value for turn in turns],
        effects=effects,
        tool_runs=course.tool_runs(),
        faults=faults,
    )


def _turns(key: InstanceKey) -> list[Turn]:
    return list(Turn.objects.filter(instance=find_instance(key)).select_related("fiber").order_by("position"))


def _answer_of(turn: Turn, messages: list[Message]) -> Any:
    """The stored answer of a turn, where it is one message of its own."""
    own = [message for message in messages if message["id"] == turn.assistant_id]
    return own[0] if own and turn.trigger != "continuation" else None


def _left_running() -> list[str]:
    held = Fiber.objects.filter(Q(status=FiberStatus.RUNNING) | Q(lease_until__isnull=False))
    return [f"Fiber {fiber.name} is {fiber.status} and still leased." for fiber in held]
