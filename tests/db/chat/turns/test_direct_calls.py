"""Turns that make one given call: no model is asked, and everything else is as in any turn."""

from typing import Any

from chat.core.model.language_model import DIRECT_CALL as NAME
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.think import StepConfig, ToolOutcome, TurnConfig
from fibers.testing import crash_after
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import SEEN
from tests.db.chat.turns.agents.hook_agents import HOOKS, no_hooks

from .conftest import MakeRoom, Room, status_of

__all__ = ["no_hooks"]  # a fixture


async def made(room: Room, tool: str, **arguments: Any) -> Turn:
    """Have a call made, and run until nothing is left to do."""
    return await room.say("a program calls", options={"direct_call": {"tool": tool, "input": arguments}})


async def parts(room: Room) -> list[tuple[str, Any]]:
    """State and output of each call of the conversation."""
    found = [part for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]
    return [(part["state"], part.get("output")) for part in found]


async def test_a_call_runs_and_no_model_is_asked(make_room: MakeRoom) -> None:
    room = make_room("banker")
    turn = await made(room, "add", a=2, b=3)
    assert (status_of(turn), turn.model_name, turn.step_count) == ("completed", NAME, 1)
    assert await parts(room) == [("output-available", 5)]
    assert room.model.requests == []
    assert [name for name, _ in SEEN if name.endswith("_tool_call")] == ["before_tool_call", "after_tool_call"]
    [(_, response)] = [each for each in SEEN if each[0] == "on_chat_response"]
    assert response.status == "completed"


async def test_hooks_cannot_have_a_model_asked(make_room: MakeRoom) -> None:
    room, other = make_room("flexible"), ScriptedModel()
    HOOKS["before_turn"] = lambda _context: TurnConfig(model=other, tool_choice="required", max_steps=9)
    HOOKS["before_step"] = lambda _context: StepConfig(model=other)
    turn = await made(room, "add", a=2, b=3)
    assert (status_of(turn), turn.step_count) == ("completed", 1)
    assert await parts(room) == [("output-available", 5)]
    assert (room.model.requests, other.requests) == ([], [])


async def test_a_hook_blocks_a_call(make_room: MakeRoom) -> None:
    room = make_room("banker")
    await made(room, "pay", amount=99)
    desk = Desk(room)
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True, continues=True)
    [(_, output)] = await parts(room)
    assert "the vault is shut" in str(output)
    assert room.model.requests == []


async def test_an_agent_that_answers_itself_is_not_asked_either(make_room: MakeRoom) -> None:
    room = make_room("own")
    await made(room, "no_such_tool")
    assert [state for state, _ in await parts(room)] == ["output-error"]
    assert await room.texts() == [("user", "a program calls"), ("assistant", "")]


async def test_input_that_does_not_fit_is_a_failed_call(make_room: MakeRoom) -> None:
    room = make_room("banker")
    turn = await made(room, "add", a="two")
    assert status_of(turn) == "completed"
    assert [state for state, _ in await parts(room)] == ["output-error"]


async def test_an_approved_call_runs_and_no_model_goes_on(make_room: MakeRoom) -> None:
    room = make_room("banker")
    await made(room, "pay", amount=5)
    assert [state for state, _ in await parts(room)] == ["approval-requested"]
    desk = Desk(room)
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True, continues=True)
    assert await parts(room) == [("output-available", "paid 5")]
    turns = [turn async for turn in Turn.objects.select_related("fiber").order_by("position")]
    assert [status_of(turn) for turn in turns] == ["completed", "completed"]
    assert room.model.requests == []


async def test_a_denied_call_does_not_run_and_no_model_goes_on(make_room: MakeRoom) -> None:
    room = make_room("banker")
    await made(room, "pay", amount=5)
    desk = Desk(room)
    [call] = await desk.calls()
    await desk.reply(call, is_approved=False, reason="no", continues=True)
    assert [state for state, _ in await parts(room)] == ["output-denied"]
    assert room.model.requests == []


async def test_a_call_whose_worker_dies_goes_on_under_the_same_id(make_room: MakeRoom) -> None:
    room = make_room("banker")
    with crash_after("model:0"):
        turn = await made(room, "add", a=2, b=3)
    assert status_of(turn) == "completed"
    assert await parts(room) == [("output-available", 5)]
    assert await Desk(room).calls() == [f"call_{turn.pk}"]
    outcomes = [outcome for name, outcome in SEEN if name == "after_tool_call"]
    assert all(isinstance(outcome, ToolOutcome) for outcome in outcomes)
    assert room.model.requests == []
