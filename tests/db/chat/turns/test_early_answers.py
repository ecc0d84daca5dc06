"""Answers to calls that their model is still saying: kept, and counted once the call is handed out."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from chat.core.model.language_model import ModelEvent, ModelRequest, ToolCallEnd
from chat.llm.scripted import ScriptedModel
from chat.streams.reader import read
from chat.turns.admission.tool_answers import has_pending_interaction
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import GATE, Desk, desk, last_text, turns_of
from tests.db.chat.turns.agents.everyday import CALLS, MODELS
from thinkproject.kernel.aio import db
from tools_app.calls import services

__all__ = ["desk"]  # a fixture


class Held(ScriptedModel):
    """Stops after the first call that it makes, until the test lets it go on."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().stream(request):
            yield event
            if isinstance(event, ToolCallEnd):
                await GATE["open"].wait()


async def say_half(desk: Desk, script: str) -> "asyncio.Task[int]":
    """Begin a turn and wait until its first call is shown; the model goes on when the gate is opened."""
    GATE["open"] = asyncio.Event()
    MODELS["current"] = Held()
    admission = await desk.room.admit(script)
    running = asyncio.create_task(run_until_idle(skip_delays=True))
    for _ in range(2000):
        if any("tool-input-available" in record.text for record in await read(admission.turn.pk, 0)):
            return running
        await asyncio.sleep(0.01)
    raise AssertionError("no call was shown")


async def end(running: "asyncio.Task[int]") -> None:
    GATE["open"].set()
    await asyncio.wait_for(running, 60)


async def test_result_before_the_model_has_ended_its_step(desk: Desk) -> None:
    running = await say_half(desk, 'call tool where {} id=c1\ncall tool where {"slow": "SLOW"} id=c2\nsay: {results}.')
    early = await desk.reply("c1", output="early", runs=False)
    again = await desk.reply("c1", output="again", runs=False)
    await end(running)
    assert (early.is_new, early.turn, again.is_new) == (True, None, False)
    assert (await desk.part("c1"))["output"] == "early"
    assert (await desk.part("c2"))["state"] == "input-available"
    await desk.reply("c2", output="late")
    assert "early" in await last_text(desk.room)
    assert len(await turns_of(desk.room)) == 2


async def test_an_early_answer_to_a_call_of_ours_does_not_count(desk: Desk) -> None:
    script = 'call tool pay {"amount": 5} id=c1\ncall tool add {"a": 1, "b": 2} id=c2\nsay: {results}.'
    running = await say_half(desk, script)
    for call in ("c1", "c2"):
        await desk.reply(call, output="forged", runs=False)
    await end(running)
    assert (await desk.part("c1"))["state"] == "approval-requested"
    assert (await desk.part("c2"))["output"] == 3
    assert [kind for kind, _, _ in await desk.events("c1")] == ["asked"]
    await desk.reply("c1", is_approved=True)
    assert CALLS == [(1, 2), (5, 0)]


async def test_early_answers_to_nothing_are_bounded_and_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_EARLY", 2)
    running = await say_half(desk, "\n".join(f"call tool where {{}} id=c{n}" for n in range(1, 9)))
    kept = [(await desk.reply(f"made-up-{n}", output=n, runs=False)).is_new for n in range(4)]
    await end(running)
    assert kept == [True, True, False, False]
    assert await db(has_pending_interaction, desk.room.key)
    assert {(await desk.part(call))["state"] for call in ("c1", "c8")} == {"input-available"}
