"""What recovery may cost, and who is asked: budgets of classes, the predicate, the last word about a turn."""

from typing import Any

import pytest

from chat.errors import TurnConflict
from chat.think import (
    LanguageModel,
    RecoveryContext,
    RecoveryExhausted,
    RetryPolicy,
    Think,
    Tool,
)
from chat.turns.admission.stop import resume_turn
from chat.turns.execution.recovery import budget_of_turn
from fibers import services
from fibers.core.budget import RecoveryBudget
from fibers.testing import claim_for_test, crash_after, expire_lease, run_until_idle
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, add
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of, text_of
from .recovering import mortal

SEEN: list[Any] = []
ANSWERS: dict[str, Any] = {}


class Sparing(Think):
    """Has budgets of its own, and says what it sees."""

    max_recoveries = 2
    no_progress_seconds = 40.0
    max_recovery_work = 1
    max_memory_losses = 0
    retry_policy = RetryPolicy(attempts=4, first_seconds=0.0, max_seconds=0.0)

    def get_model(self) -> LanguageModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [add]

    def on_chat_recovery(self, context: RecoveryContext) -> None:
        SEEN.append(context)

    def should_keep_recovering(self, context: RecoveryContext) -> bool | None:
        SEEN.append(("keep?", context.losses))
        answer: bool | None = ANSWERS.get("keep")
        return answer

    def on_recovery_exhausted(self, context: RecoveryExhausted) -> None:
        SEEN.append(context)
        if "fails" in ANSWERS:
            raise RuntimeError("the hook broke")


class Prudent(Sparing):
    """Waits for a person once its worker was lost."""

    chat_recovery = "paused"


@pytest.fixture(autouse=True)
def _nothing_recovered() -> None:
    SEEN.clear()
    ANSWERS.clear()


def seen(kind: type[Any]) -> list[Any]:
    return [value for value in SEEN if isinstance(value, kind)]


async def test_a_class_decides_how_often_its_turns_are_recovered(make_room: MakeRoom) -> None:
    room = make_room("sparing")
    with mortal(room, 0, 0, 0, 0):
        turn = await room.say("say: Never.")
    assert (status_of(turn), turn.error_code, turn.fiber.reason) == (
        "error",
        "interrupted",
        "recovery_attempts_exhausted",
    )
    assert [(each.recovery_attempt, each.max_recovery_attempts, each.losses) for each in seen(RecoveryContext)] == [
        (1, 2, 1),
        (2, 2, 2),
    ]
    [exhausted] = seen(RecoveryExhausted)
    assert (exhausted.reason, exhausted.losses, exhausted.turn_id) == ("recovery_attempts_exhausted", 3, turn.pk)
    assert {each.incident_id for each in [*seen(RecoveryContext), exhausted]} == {turn.fiber.incident["id"]}


async def test_what_a_turn_settles_while_it_loses_its_workers_is_bounded(make_room: MakeRoom) -> None:
    room = make_room("sparing")
    calls = "\n".join(f'call tool add {{"a": {n}, "b": 1}}\nsay: {n}.' for n in range(4))
    with crash_after("model:0"), crash_after("model:1"), crash_after("model:2"):
        turn = await room.say(calls)
    assert (status_of(turn), turn.fiber.reason) == ("error", "recovery_work_exhausted")
    [exhausted] = seen(RecoveryExhausted)
    assert exhausted.reason == "recovery_work_exhausted"
    answer = (await room.transcript())[-1]
    assert text_of(answer) == exhausted.partial_text != ""  # what was shown is kept
    assert any(part.get("state") == "output-available" for part in answer["parts"])


async def test_a_turn_that_takes_its_worker_down_for_memory_has_a_budget_of_its_own(make_room: MakeRoom) -> None:
    room = make_room("sparing")
    admission = await room.admit("say: Never.")
    context = await db(claim_for_test, admission.turn.fiber_id)
    assert context is not None
    await db(services.note_memory_loss, context.worker)
    await db(expire_lease, context.fiber_id)
    await run_until_idle(skip_delays=True)
    turn = await room.turn(admission.turn.pk)
    assert (status_of(turn), turn.fiber.reason) == ("error", "out_of_memory")
    assert [each.reason for each in seen(RecoveryExhausted)] == ["out_of_memory"]


async def test_the_predicate_is_asked_from_the_second_loss_on_and_ends_the_turn(make_room: MakeRoom) -> None:
    ANSWERS["keep"] = False
    room = make_room("sparing")
    with mortal(room, 2, 2):
        turn = await room.say("stream 12 words")
    assert (status_of(turn), turn.error_text) == ("error", Sparing.interrupted_text)
    assert [each for each in SEEN if isinstance(each, tuple)] == [("keep?", 2)]
    [exhausted] = seen(RecoveryExhausted)
    assert (exhausted.reason, exhausted.partial_text) == ("recovery_declined", text_of((await room.transcript())[-1]))


async def test_a_predicate_without_an_opinion_goes_on(make_room: MakeRoom) -> None:
    room = make_room("sparing")
    with mortal(room, 2, 2):
        turn = await room.say("stream 12 words")
    assert (status_of(turn), seen(RecoveryExhausted)) == ("completed", [])


@pytest.mark.parametrize("key", ["exhausted", "final"])
async def test_the_last_word_is_had_once_also_over_a_crash(make_room: MakeRoom, key: str) -> None:
    ANSWERS["fails"] = True
    room = make_room("sparing")
    with crash_after(key), mortal(room, 0, 0, 0):
        await room.say("say: Never.")
    assert len(seen(RecoveryExhausted)) == 1


async def test_the_settings_budget_holds_where_a_class_says_nothing(make_room: MakeRoom) -> None:
    frugal, plain = make_room("sparing"), make_room()
    budget = RecoveryBudget(max_recoveries=7, no_progress_seconds=9.0, max_work=8, max_memory_losses=6)
    found = []
    for room in (frugal, plain):
        admission = await room.admit("say: Hi.")
        found.append(await db(budget_of_turn, {"turn_id": admission.turn.pk}, budget))
    assert found == [RecoveryBudget(max_recoveries=2, no_progress_seconds=40, max_work=1, max_memory_losses=0), budget]
    assert await db(budget_of_turn, {"turn_id": "gone"}, budget) == budget


async def test_agents_retry_their_own_code_under_the_policy_of_their_class() -> None:
    tries: list[int] = []

    async def flaky(attempt: int) -> str:
        tries.append(attempt)
        if attempt < 4:
            raise ConnectionError
        return "done"

    agent = object.__new__(Sparing)
    assert await agent.retry(flaky) == "done"
    assert tries == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="attempts"):
        agent.retry(flaky, attempts=0)


async def test_a_paused_turn_goes_on_when_a_person_resumes_it(make_room: MakeRoom) -> None:
    room = make_room("prudent")
    with crash_after("call:one"):
        turn = await room.say('call tool add {"a": 1, "b": 2} id=one\nsay: It is {result}.')
    assert (status_of(turn), turn.error_code, turn.fiber.reason) == ("error", "paused", "paused")
    assert seen(RecoveryExhausted) == []
    [call] = [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]
    assert call["output"] == 3
    assert await db(resume_turn, turn.pk)
    assert not await db(resume_turn, turn.pk)  # it is on its way
    await run_until_idle(skip_delays=True)
    turn = await room.turn(turn.pk)
    assert (status_of(turn), turn.error_code, CALLS) == ("completed", "", [(1, 2)])
    assert [role for role, _ in await room.texts()] == ["user", "assistant"]
    assert text_of((await room.transcript())[-1]) == "It is 3."


async def test_a_paused_turn_is_not_resumed_once_the_conversation_has_gone_on(make_room: MakeRoom) -> None:
    room = make_room("prudent")
    with mortal(room, 2):
        turn = await room.say("stream 12 words")
    await room.say("say: Never mind.")
    with pytest.raises(TurnConflict):
        await db(resume_turn, turn.pk)


async def test_a_turn_that_has_ended_well_is_not_resumed(make_room: MakeRoom) -> None:
    turn = await make_room("prudent").say("say: Hi.")
    assert not await db(resume_turn, turn.pk)
