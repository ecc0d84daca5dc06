"""A model that falls silent: the agent is asked as after a crash, and the caller learns how the turn ended."""

import asyncio
from typing import Any

import pytest

from chat.testing import worker
from chat.think import LanguageModel, RecoveryContext, RecoveryDecision, Think, Tool, TurnConfig, TurnContext
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, add

from .conftest import MakeRoom, status_of, text_of

SEEN: list[RecoveryContext] = []
ANSWERS: dict[str, RecoveryDecision] = {}


class Restless(Think):
    """Gives its model a moment."""

    stall_timeout_seconds = 0.1

    def get_model(self) -> LanguageModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [add]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(stall_timeout_seconds=0.1)

    def on_chat_recovery(self, context: RecoveryContext) -> RecoveryDecision | None:
        SEEN.append(context)
        return ANSWERS.get("decision")


class Ends:
    """A caller."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    async def on_done(self) -> None:
        self.ends.append("done")

    async def on_error(self, text: str) -> None:
        self.ends.append(text)


@pytest.fixture(autouse=True)
def _stalls_soon(settings: Any) -> None:
    settings.THINK_MODEL_FIRST_TOKEN_SECONDS = 0.1
    SEEN.clear()
    ANSWERS.clear()


async def test_the_hook_is_called_when_a_model_falls_silent_in_mid_answer(make_room: MakeRoom) -> None:
    room = make_room("restless")
    turn = await room.say("say: One two three four five.\nstall after 3 for 60 s")
    [context] = SEEN
    assert (context.kind, context.cause, context.attempt) == ("continue", "model_stalled", 1)
    whole = text_of((await room.transcript())[-1])
    assert (status_of(turn), whole) == ("completed", "One two three four five.")
    assert whole.startswith(context.partial_text)
    assert context.partial_text


async def test_the_hook_is_called_when_a_model_says_nothing_at_all(make_room: MakeRoom) -> None:
    room = make_room("restless")
    turn = await room.say("hang for 60 s\nsay: At last.")
    [context] = SEEN
    assert (context.kind, context.cause, context.partial_text) == ("retry", "model_stalled", "")
    assert status_of(turn) == "completed"


@pytest.mark.parametrize("persist", [True, False])
async def test_the_hook_may_end_a_turn_whose_model_is_silent(make_room: MakeRoom, persist: bool) -> None:
    ANSWERS["decision"] = RecoveryDecision(continue_turn=False, persist=persist)
    room = make_room("restless")
    turn = await room.say(
        'call tool add {"a": 1, "b": 2}\nsay: One two three four five.\nstall after 3 for 60 s times 9'
    )
    assert (status_of(turn), turn.error_text, CALLS) == ("error", "The assistant was interrupted.", [(1, 2)])
    answer = (await room.transcript())[-1]
    assert bool(text_of(answer)) is persist
    assert [part["output"] for part in answer["parts"] if "toolCallId" in part] == [3]  # settled results always stay


@pytest.mark.parametrize(
    ("script", "decision", "end"),
    [
        ("say: One two three.\nstall after 1 for 60 s", None, "done"),
        ("stream 60 words\nstall after 1 for 60 s times 99", None, "sent nothing"),
        ("hang for 60 s times 99\nsay: Never.", None, "sent nothing"),
        ("say: One two.\nstall after 1 for 60 s", RecoveryDecision(continue_turn=False), "interrupted"),
    ],
)
async def test_the_caller_always_learns_the_end(
    make_room: MakeRoom, settings: Any, script: str, decision: RecoveryDecision | None, end: str
) -> None:
    settings.THINK_MODEL_ATTEMPTS = 1
    if decision is not None:
        ANSWERS["decision"] = decision
    caller = Ends()
    async with worker(), asyncio.timeout(30):
        await make_room("restless").handle.chat(script, caller)
    assert len(caller.ends) == 1
    assert end in caller.ends[0]
