"""Turns that wait for an answer without a worker: they go on where they were, and nothing of it looks like a crash."""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.errors import CallNotFound
from chat.instances.rows import find_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Turn
from chat.operations.removal import delete_instance
from chat.reads import snapshots, transcripts
from chat.think import RecoveryContext, Think, Tool, ToolContext, tool
from fibers.context import current_fiber
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.process.runs import registry as runs
from fibers.testing import die, run_until_idle
from fibers.waits import WaitEnd
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.read_only_admin import moment_text

from .conftest import MakeRoom, Room, status_of, text_of
from .notifications import kinds_until, listen

pytestmark = pytest.mark.django_db(transaction=True)

NOTED: list[str] = []
"""What tools and hooks did, in order."""

ASK = "call tool ask {} id=one\nsay: It says {result}."


def said(end: WaitEnd) -> str:
    """What a tool makes of the end of its wait."""
    return "nothing came" if end.has_expired else f"{end.answer}"


@tool(reruns=False)
async def ask(context: ToolContext) -> str:
    """Ask a person, for an hour; effects before the question happen under one key."""
    NOTED.append(f"ask {context.idempotency_key.rpartition(':')[2]}")
    return said(await context.wait("question", label="Which colour?", seconds=3600))


@tool
async def ask_twice(context: ToolContext) -> str:
    """Ask two questions, one after the other."""
    first = await context.wait("question", key="first", seconds=60)
    second = await context.wait("question", key="second", seconds=60)
    return f"{said(first)} and {said(second)}"


@tool
async def ask_and_die(context: ToolContext) -> str:
    """Ask, and lose the worker once after the answer."""
    end = await context.wait("question")
    fiber = current_fiber()
    assert fiber is not None
    NOTED.append(f"answered in attempt {fiber.attempt}")
    if fiber.attempt == 2:
        die(fiber)
    return said(end)


@tool
async def act() -> str:
    """Act once."""
    NOTED.append("act")
    return "acted"


class Parking(Think):
    """Has all of them, and gives up whatever a crash cut."""

    chat_recovery = False

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [ask, ask_twice, ask_and_die, act]

    def on_chat_recovery(self, context: RecoveryContext) -> None:
        NOTED.append("recovery")


class ParkingGoesOn(Parking):
    """The same, and goes on after a crash."""

    chat_recovery = True


@pytest.fixture(autouse=True)
def _nothing_noted() -> None:
    NOTED.clear()


async def parked(room: Room, text: str = ASK) -> Turn:
    """Admit a turn whose tool waits."""
    turn = await room.say(text)
    assert turn.fiber.status == "parked"
    return turn


async def goes_on(room: Room, turn: Turn) -> Turn:
    await run_until_idle(skip_delays=True)
    return await room.turn(turn.pk)


async def test_an_answer_lets_the_turn_go_on_and_nothing_looks_like_a_crash(make_room: MakeRoom) -> None:
    room = make_room("parking")
    listening = await listen(room.key)
    turn = await parked(room)
    assert not runs.snapshot()  # no worker holds it
    assert await room.handle.answer_wait("one", "blue", wait="question")
    turn = await goes_on(room, turn)
    events = await kinds_until(listening, "turn.settled")
    assert status_of(turn) == "completed"
    assert text_of((await room.transcript())[-1]) == "It says blue."
    assert NOTED == ["ask one", "ask one"]  # from its beginning again, under the same key
    assert "turn.recovering" not in events
    assert len(room.model.requests) == 2


async def test_readers_see_what_a_turn_waits_for(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    ref = await db(snapshots.find_turn, room.key, turn_id=turn.pk)
    assert ref is not None
    assert (ref.status.value, ref.is_recovering, ref.is_final) == ("running", False, False)
    view = await db(transcripts.turn_view_of, turn.pk)
    [wait] = view.waits
    assert (wait["kind"], wait["label"], wait["call_id"]) == ("question", "Which colour?", "one")
    assert wait["until"] is not None
    assert datetime.fromisoformat(wait["since"]) <= timezone.now()
    await room.handle.answer_wait("one", "blue", wait="question")
    turn = await goes_on(room, turn)
    assert (await db(transcripts.turn_view_of, turn.pk)).waits == ()
    assert all(not part["type"].startswith("data-") for part in (await room.transcript())[-1]["parts"])


def shown_to_staff(*names: str, row_id: str) -> str:
    """The text of an admin page of a row."""
    client = Client()
    client.force_login(User.objects.create_superuser(f"staff-{User.objects.count()}"))
    return client.get(reverse(f"admin:{'_'.join(names)}_change", args=[row_id])).content.decode()


async def test_the_admin_shows_what_a_turn_waits_for_and_since_when(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    since = datetime.fromisoformat(turn.fiber.waits[0]["since"])
    text = f"Which colour?, since {moment_text(since)}"
    assert text in await db(partial(shown_to_staff, "think_chat", "turn", row_id=turn.pk))
    assert text in await db(partial(shown_to_staff, "think_fibers", "fiber", row_id=turn.fiber_id))
    await room.handle.answer_wait("one", "blue", wait="question")
    await goes_on(room, turn)
    assert text not in await db(partial(shown_to_staff, "think_chat", "turn", row_id=turn.pk))


async def test_the_first_answer_wins(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    assert await room.handle.answer_wait("one", "blue", wait="question")
    assert not await room.handle.answer_wait("one", "red", wait="question")
    await goes_on(room, turn)
    assert text_of((await room.transcript())[-1]) == "It says blue."
    with pytest.raises(CallNotFound):
        await room.handle.answer_wait("one", "late", wait="question")


async def test_an_answer_that_comes_before_the_turn_has_parked_is_not_lost(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room("parking")
    wait = ToolContext.wait

    async def answered_at_once(context: ToolContext, kind: str, **options: Any) -> WaitEnd:
        await room.handle.answer_wait(context.call_id, "early", wait=kind)
        return await wait(context, kind, **options)

    monkeypatch.setattr(ToolContext, "wait", answered_at_once)
    turn = await room.say(ASK)
    assert status_of(turn) == "completed"
    assert text_of((await room.transcript())[-1]) == "It says early."


async def test_calls_beside_one_that_waits_end_first_and_once(make_room: MakeRoom) -> None:
    room = make_room("parking")
    script = "call tool act {} id=zero\ncall tool ask {} id=one\ncall tool ask {} id=two\nsay: {results}"
    turn = await parked(room, script)
    assert sorted(NOTED) == ["act", "ask one", "ask two"]
    assert len((await db(transcripts.turn_view_of, turn.pk)).waits) == 2
    await room.handle.answer_wait("two", "second", wait="question")
    turn = await goes_on(room, turn)
    assert turn.fiber.status == "parked"
    assert [wait["call_id"] for wait in (await db(transcripts.turn_view_of, turn.pk)).waits] == ["one"]
    await room.handle.answer_wait("one", "first", wait="question")
    assert status_of(await goes_on(room, turn)) == "completed"
    assert NOTED.count("act") == 1
    answer = text_of((await room.transcript())[-1])
    assert "first" in answer
    assert "second" in answer


async def test_a_tool_asks_several_questions_in_turn(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room, "call tool ask_twice {} id=one\nsay: It says {result}.")
    for key in ("first", "second"):
        assert turn.fiber.status == "parked"
        await room.handle.answer_wait("one", key, wait=key)
        turn = await goes_on(room, turn)
    assert text_of((await room.transcript())[-1]) == "It says first and second."


async def test_a_wait_that_is_over_lets_the_turn_go_on_without_an_answer(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    await db(recovery.sweep)
    assert (await room.turn(turn.pk)).fiber.status == "parked"
    await let_time_pass(turn)
    assert not await room.handle.answer_wait("one", "late", wait="question")
    turn = await goes_on(room, turn)
    assert text_of((await room.transcript())[-1]) == "It says nothing came."


async def let_time_pass(turn: Turn) -> None:
    """Have the sweeper find that the first wait is over."""
    await db(Fiber.objects.filter(pk=turn.fiber_id).update, parked_until=Now() - timedelta(seconds=1))
    await db(recovery.sweep)


async def test_a_wait_keeps_its_end_while_others_are_answered(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room, "call tool ask {} id=one\ncall tool ask {} id=two\nsay: {results}")
    until = {wait["call_id"]: wait["until"] for wait in turn.fiber.waits}
    since = {wait["call_id"]: wait["since"] for wait in turn.fiber.waits}
    await room.handle.answer_wait("one", "first", wait="question")
    turn = await goes_on(room, turn)
    assert [(wait["call_id"], wait["until"]) for wait in turn.fiber.waits] == [("two", until["two"])]
    assert turn.fiber.waits[0]["since"] == since["two"]
    assert turn.fiber.parked_until is not None


async def test_a_crash_after_the_answer_is_a_crash(make_room: MakeRoom) -> None:
    room = make_room("parking-goes-on")
    turn = await parked(room, "call tool ask_and_die {} id=one\nsay: It says {result}.")
    await room.handle.answer_wait("one", "blue", wait="question")
    turn = await goes_on(room, turn)
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 3)
    assert NOTED == ["answered in attempt 2", "recovery", "answered in attempt 3"]
    assert text_of((await room.transcript())[-1]) == "It says blue."


async def test_a_parked_turn_is_stopped_at_once(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    assert await room.handle.abort_all_requests()
    turn = await goes_on(room, turn)
    assert status_of(turn) == "aborted"
    [call] = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    assert call["state"] in {"input-available", "output-error"}
    await room.say("say: On we go.")
    assert text_of((await room.transcript())[-1]) == "On we go."


@pytest.mark.parametrize("how", ["clear", "delete"])
async def test_a_parked_turn_ends_with_its_conversation(make_room: MakeRoom, how: str) -> None:
    room = make_room("parking")
    turn = await parked(room)
    if how == "clear":
        await room.handle.clear()
    else:
        instance = await db(find_instance, room.key)
        assert isinstance(instance, AgentInstance)
        await db(delete_instance, instance)
    await run_until_idle(skip_delays=True)
    assert not await db(Fiber.objects.filter(status__in=["parked", "running", "pending"]).exists)
    with pytest.raises(CallNotFound):
        await room.handle.answer_wait("one", "late", wait="question")
    assert await room.transcript() == []
    assert turn.pk


async def test_a_message_waits_behind_a_parked_turn_as_behind_a_running_one(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    later = await room.say("say: Later.")
    assert later.fiber.status == "pending"
    await room.handle.answer_wait("one", "blue", wait="question")
    await goes_on(room, turn)
    texts = [text_of(message) for message in await room.transcript()]
    assert texts[1] == "It says blue."
    assert texts[-1] == "Later."


async def test_waiting_for_a_parked_turn_ends_with_it(make_room: MakeRoom) -> None:
    room = make_room("parking")
    turn = await parked(room)
    waiting = asyncio.create_task(room.handle.wait_until_stable(30))
    await room.handle.answer_wait("one", "blue", wait="question")
    await goes_on(room, turn)
    assert await waiting
