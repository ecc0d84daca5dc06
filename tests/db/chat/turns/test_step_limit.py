"""The limit of an answer's steps: the last answer, the reason, and an answer that goes on after a decision."""

from collections.abc import Sequence
from typing import Any

import pytest

from chat.core.loop.step_limit import STEP_LIMIT, STEP_LIMIT_TEXT, STOP_CONDITION
from chat.reads.transcripts import turn_page
from chat.think import StepRecord, Think, Tool, TurnConfig, TurnContext
from tests.db.chat.turns.agents.answering import Desk, pay, turns_of
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN, add
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of

ADDS = 'call tool add {"a": 1, "b": 1}\nsay: on.\n'
PAYS = 'call tool pay {"amount": 5}\nsay: on.\n'
LIMIT_TEXT = STEP_LIMIT_TEXT.replace("{steps}", "3")


class Limited(Think):
    """May call tools in three steps."""

    max_steps = 3
    asks_about_loops = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [add, pay]


class LimitedWatcher(Limited):
    """Ends when it has paid twice, and notes which steps it was asked about."""

    max_steps = 9

    def before_turn(self, context: TurnContext) -> TurnConfig:
        def has_paid_twice(steps: Sequence[StepRecord]) -> bool:
            SEEN.append(("steps", steps))
            return [call["toolName"] for step in steps for call in step.tool_calls].count("pay") == 2

        return TurnConfig(stop_when=has_paid_twice)


async def reasons(room: Room) -> list[str | None]:
    instance_id = (await turns_of(room))[0].instance_id
    return [turn.end_reason for turn in reversed(await db(turn_page, instance_id))]


async def test_a_turn_at_its_step_limit_ends_with_words_and_a_reason(make_room: MakeRoom) -> None:
    room = make_room("limited")
    turn = await room.say(ADDS * 9 + "say: done")
    assert (status_of(turn), turn.step_count, len(CALLS)) == ("completed", 4, 3)
    message = (await room.transcript())[-1]
    assert message["parts"][-1] == {"type": "text", "text": LIMIT_TEXT, "state": "done"}
    assert message["metadata"]["think"] == {"ended": STEP_LIMIT}
    assert await reasons(room) == [STEP_LIMIT]
    assert [request.get("tool_choice") for request in room.model.requests] == [None, None, None, "none"]


async def test_a_class_may_end_at_the_limit_without_that_call(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limited, "answers_at_step_limit", False)
    room = make_room("limited")
    turn = await room.say(ADDS * 9 + "say: done")
    assert (status_of(turn), turn.step_count, len(CALLS)) == ("completed", 3, 3)
    assert await reasons(room) == [STEP_LIMIT]


async def test_a_turn_that_is_done_within_its_limit_has_no_reason(make_room: MakeRoom) -> None:
    room = make_room("limited")
    await room.say(ADDS * 2 + "say: done")
    assert text_of((await room.transcript())[-1]).endswith("done")
    assert await reasons(room) == [None]


async def test_the_limit_counts_on_after_a_decision(make_room: MakeRoom) -> None:
    desk = Desk(make_room("limited"))
    await desk.room.say(ADDS + PAYS + ADDS * 5 + "say: done")
    [_, paid] = await desk.calls()
    await desk.reply(paid, is_approved=True)
    assert len(CALLS) == 3  # an addition, the payment, an addition: three steps of one answer
    assert text_of((await desk.room.transcript())[-1]).endswith(LIMIT_TEXT)
    assert await reasons(desk.room) == [None, STEP_LIMIT]


async def test_a_decision_about_the_last_step_is_carried_out_and_answered(make_room: MakeRoom) -> None:
    desk = Desk(make_room("limited"))
    await desk.room.say(PAYS * 9 + "say: done")
    for count in (1, 2, 3):
        await desk.reply((await desk.calls())[-1], is_approved=True)
        assert len(CALLS) == count
    assert text_of((await desk.room.transcript())[-1]).endswith(LIMIT_TEXT)
    assert [turn.step_count for turn in await turns_of(desk.room)] == [1, 1, 1, 1]


async def test_conditions_see_the_steps_before_the_decision(make_room: MakeRoom) -> None:
    desk = Desk(make_room("limited-watcher"))
    await desk.room.say(PAYS + ADDS + PAYS + ADDS + "say: done")
    await desk.reply((await desk.calls())[-1], is_approved=True)
    await desk.reply((await desk.calls())[-1], is_approved=True)
    seen: list[tuple[StepRecord, ...]] = [steps for name, steps in SEEN if name == "steps"]
    assert [[call["toolName"] for step in steps for call in step.tool_calls] for steps in seen] == [
        ["pay", "add"],
        ["pay", "add", "pay", "add"],
    ]
    assert seen[-1][0].tool_results[0]["output"] == "paid 5"
    assert [step.model_name for step in seen[-1]] == [seen[-1][0].model_name] * 4
    assert seen[-1][0].usage.input_tokens > 0
    assert await reasons(desk.room) == [None, None, STOP_CONDITION]
