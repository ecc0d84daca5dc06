"""Calls that a person approves with other arguments: what runs, is shown and sent to the model; crashes, races."""

import asyncio
from functools import partial

import pytest

from chat.core.context.prompt import EDITED_TEXT
from chat.errors import CallDecided
from chat.turns.admission.continuation import Replied, reply_to_call
from chat.turns.admission.tool_answers import Reply
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import GATE, Desk, desk, on_record
from tests.db.chat.turns.agents.everyday import CALLS
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.calls.services import Actor
from tools_app.errors import EditInvalid
from tools_app.models import ToolCallRecord

from .conftest import text_of

__all__ = ["desk"]  # a fixture

PAY = 'call tool pay {"amount": 5}\nsay: It says {result}.'


def results_sent(desk: Desk) -> list[JSONValue]:
    """What the last request has as results of calls."""
    return [message["content"] for message in desk.room.model.requests[-1]["messages"] if message["role"] == "tool"]


async def asked(desk: Desk, text: str = PAY) -> str:
    await desk.room.say(text)
    [call] = await desk.calls()
    return call


async def test_the_question_is_in_the_tools_own_words(desk: Desk) -> None:
    call = await asked(desk)
    part = await desk.part(call)
    assert part["title"] == "Payment"
    assert part["approval"]["descriptor"] == {"title": "Payment", "sentence": "Pay 5 EUR?", "mayEdit": True}
    row = await desk.row(call)
    assert row.question["input_schema"]["properties"] == {"amount": {"type": "integer"}}


@pytest.mark.parametrize(("amount", "sentence"), [(12, "Spend 12?"), (14, "")])
async def test_a_function_may_make_the_sentence(desk: Desk, amount: int, sentence: str) -> None:
    call = await asked(desk, f'call tool spend {{"amount": {amount}}}\nsay: Done.')
    descriptor = (await desk.part(call))["approval"]["descriptor"]
    assert descriptor == {"title": "", "sentence": sentence, "mayEdit": False}
    assert (await desk.row(call)).question["input_schema"] is None


async def test_the_call_runs_with_the_changed_arguments_and_the_model_learns_it(desk: Desk) -> None:
    call = await asked(desk)
    await desk.reply(call, is_approved=True, edited_input={"amount": 3})
    assert CALLS == [(3, 0)]
    part = await desk.part(call)
    assert (part["state"], part["input"], part["output"]) == ("output-available", {"amount": 3}, "paid 3")
    assert (part["approval"]["edited"], part["approval"]["originalInput"]) == (True, {"amount": 5})
    sent = results_sent(desk)
    assert sent == [f'{EDITED_TEXT} {{"amount":3}}\npaid 3']
    assert "paid 3" in text_of((await desk.room.transcript())[-1])
    await desk.room.say("say: And later?")
    assert results_sent(desk) == sent


async def test_a_change_that_does_not_fit_leaves_the_question_open(desk: Desk) -> None:
    call = await asked(desk)
    with pytest.raises(EditInvalid):
        await desk.reply(call, is_approved=True, edited_input={"amount": "much"})
    assert (await desk.part(call))["state"] == "approval-requested"
    assert await desk.events(call) == [("asked", "turn", "")]
    assert (await desk.reply(call, is_approved=True)).is_new
    assert CALLS == [(5, 0)]


async def test_of_two_decisions_at_once_one_wins(desk: Desk) -> None:
    call = await asked(desk)

    async def decide(amount: int) -> Replied:
        reply = Reply(call_id=call, is_approved=True, edited_input={"amount": amount})
        actor = Actor(user_id=desk.room.key.owner_id, via="api")
        return await db(partial(reply_to_call, desk.room.key, reply, actor))

    outcomes = await asyncio.gather(*(decide(amount) for amount in (1, 2, 3)), return_exceptions=True)
    won = [amount for amount, outcome in zip((1, 2, 3), outcomes, strict=True) if isinstance(outcome, Replied)]
    assert len(won) == 1
    assert sum(isinstance(outcome, CallDecided) for outcome in outcomes) == 2
    await run_until_idle(skip_delays=True)
    winner = won[0]
    assert [(winner, 0)] == CALLS
    assert (await desk.part(call))["input"] == {"amount": won[0]}
    assert [kind for kind, _, _ in await desk.events(call)] == ["asked", "approved"]


@pytest.mark.parametrize("record", ["begin", "approved:", "model:0", "ending", "final"])
async def test_a_crash_at_any_step_runs_the_changed_arguments(desk: Desk, record: str) -> None:
    call = await asked(desk)
    with on_record(record, dies=True):
        await desk.reply(call, is_approved=True, edited_input={"amount": 3})
    assert CALLS == [(3, 0)]
    part = await desk.part(call)
    assert (part["state"], part["input"], part["output"]) == ("output-available", {"amount": 3}, "paid 3")
    assert part["approval"]["originalInput"] == {"amount": 5}
    transcript = await desk.room.transcript()
    assert [message["role"] for message in transcript] == ["user", "assistant", "assistant"]
    assert "paid 3" in text_of(transcript[-1])


async def test_a_decision_during_the_turn_is_taken_up_by_its_end(desk: Desk) -> None:
    GATE["open"] = asyncio.Event()
    text = 'call tool pay {"amount": 5}\ncall tool linger {}\nsay: Done.'
    with on_record("call:") as seen:
        turn = asyncio.create_task(desk.room.say(text))
        async with asyncio.timeout(20):
            await seen.wait()
        call = await db(ToolCallRecord.objects.values_list("call_id", flat=True).get, tool_name="pay")
        assert (await desk.reply(call, is_approved=True, edited_input={"amount": 3}, runs=False)).is_new
        GATE["open"].set()
        await turn
    part = await desk.part(call)
    assert (part["input"], part["output"], CALLS) == ({"amount": 3}, "paid 3", [(3, 0)])
    assert part["approval"]["originalInput"] == {"amount": 5}
