"""Questions of actions that pause: they stay open while the conversation goes on, and it comes back to them."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.conversations.list import instance_page
from chat.core.context.prompt import DECIDED_TEXT, WAITING_TEXT
from chat.models import Turn
from chat.think import Tool
from chat.turns.admission.continuation import expire_question
from chat.turns.admission.intake import ClientArray, Edit, Regenerate
from chat.turns.admission.stop import cancel_turn
from fibers.testing import crash_after, run_until_idle
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import Message, NewMessage
from tests.db.chat.turns.agents.action_agents import EFFECTS, Clerk, fresh_rules
from tests.db.chat.turns.agents.answering import Desk, pay
from tests.db.chat.turns.agents.everyday import CALLS
from thinkproject.kernel.aio import db
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, status_of, text_of
from .refunds import REFUND, grant, part

__all__ = ["fresh_rules"]  # a fixture

NEXT = "say: Something else."


class Cashier(Clerk):
    """Has an ordinary tool that a person approves besides."""

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), pay]


@pytest.fixture
async def asked_clerk(make_room: MakeRoom) -> Desk:
    """A conversation that has asked about a refund, and has gone on since."""
    desk = Desk(make_room("clerk"))
    await grant(desk)
    await desk.room.say(REFUND)
    return desk


def sent(desk: Desk) -> list[dict[str, Any]]:
    """The messages of the last request to the model."""
    messages: list[dict[str, Any]] = desk.room.model.requests[-1]["messages"]
    return messages


def result_of(desk: Desk) -> str:
    """The refund's result, as the last request has it."""
    [message] = [each for each in sent(desk) if each["role"] == "tool"]
    return str(message["content"])


async def approve(desk: Desk) -> None:
    [asked] = await desk.room.handle.pending_approvals()
    assert await desk.room.handle.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)


async def continuations() -> list[Turn]:
    return await db(lambda: list(Turn.objects.filter(parent__isnull=False).select_related("fiber")))


# --- while it is open ------------------------------------------------------------------------------------------------


async def test_a_new_message_is_answered_and_leaves_the_question_open(asked_clerk: Desk) -> None:
    turn = await asked_clerk.room.say(NEXT)
    assert status_of(turn) == "completed"
    assert text_of((await asked_clerk.room.transcript())[-1]) == "Something else."
    assert (await part(asked_clerk))["state"] == "approval-requested"
    assert len(await asked_clerk.room.handle.pending_approvals()) == 1
    assert [event[0] for event in await asked_clerk.events("one")] == ["asked"]
    assert result_of(asked_clerk) == WAITING_TEXT
    assert await asked_clerk.room.handle.has_pending_interaction()


async def test_the_list_counts_it_although_it_is_not_the_end_of_the_conversation(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    owner_id = asked_clerk.room.key.owner_id
    assert owner_id is not None
    page = await db(instance_page, owner_id)
    assert [line.waiting_count for line in page.items] == [1]


async def test_a_question_beside_it_that_does_not_last_is_passed_over(make_room: MakeRoom) -> None:
    desk = Desk(make_room("cashier"))
    await grant(desk)
    await desk.room.say(REFUND.replace("say:", 'call tool pay {"amount": 3} id=two\nsay:'))
    await desk.room.say(NEXT)
    assert [asked.call_id for asked in await desk.room.handle.pending_approvals()] == ["one"]
    assert (await part(desk, "two"))["state"] == "output-denied"
    await approve(desk)
    assert (len(EFFECTS), CALLS) == (1, [])


async def test_a_clear_takes_it_along(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    await asked_clerk.room.handle.clear()
    assert await asked_clerk.room.handle.pending_approvals() == []
    assert (await asked_clerk.events("one"))[-1][0] == "superseded"


@pytest.mark.parametrize("how", ["regenerate", "edit"])
async def test_another_branch_leaves_it_behind(asked_clerk: Desk, how: str) -> None:
    [question, _answer] = await asked_clerk.room.transcript()
    edited: NewMessage = {"role": "user", "parts": [{"type": "text", "text": NEXT}]}
    intake = Regenerate(message_id=question["id"])
    await asked_clerk.room.say(intake if how == "regenerate" else Edit(message_id=question["id"], message=edited))
    first = await db(ToolCallRecord.objects.order_by("pk").first)
    assert first is not None
    assert (first.status, first.output) == ("denied", "The conversation went on without an answer.")
    assert EFFECTS == []


async def test_the_answer_that_follows_it_may_be_asked_for_again(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    await asked_clerk.room.say(Regenerate(message_id=(await asked_clerk.room.transcript())[-1]["id"]))
    assert len(await asked_clerk.room.handle.pending_approvals()) == 1
    await approve(asked_clerk)
    assert len(EFFECTS) == 1


async def test_a_client_that_sends_its_whole_list_changes_nothing_of_it(asked_clerk: Desk) -> None:
    shown: list[Message] = await asked_clerk.room.transcript()
    decided = {**shown[1], "parts": [{**each, "state": "approval-responded"} for each in shown[1]["parts"]]}
    words: Message = {"id": "m-new", "role": "user", "parts": [{"type": "text", "text": NEXT}]}
    turn = await asked_clerk.room.say(ClientArray(messages=[shown[0], decided, words]))  # type: ignore[list-item]
    assert status_of(turn) == "completed"
    assert len(await asked_clerk.room.handle.pending_approvals()) == 1


# --- once it is decided ----------------------------------------------------------------------------------------------


async def test_an_approval_comes_back_to_it_where_the_conversation_is_now(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    await approve(asked_clerk)
    assert EFFECTS == [("refund", "A-1", 5, "refund:A-1")]
    assert (await part(asked_clerk))["output"] == "refunded A-1"
    roles = [message["role"] for message in await asked_clerk.room.transcript()]
    assert roles == ["user", "assistant", "user", "assistant", "assistant"]
    [turn] = await continuations()
    assert status_of(turn) == "completed"
    assert result_of(asked_clerk) == "refunded A-1"
    last = sent(asked_clerk)[-1]
    assert last["role"] == "user"
    assert (
        last["content"] == f'{DECIDED_TEXT}\n- refund {{"order":"A-1","amount":5}}: approved. Its result: refunded A-1'
    )
    assert all(DECIDED_TEXT not in text_of(message) for message in await asked_clerk.room.transcript())


async def test_a_denial_comes_back_with_its_reason(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    [asked] = await asked_clerk.room.handle.pending_approvals()
    assert await asked_clerk.room.handle.reject_execution(asked.id, "too much")
    await run_until_idle(skip_delays=True)
    assert EFFECTS == []
    assert (await part(asked_clerk))["state"] == "output-denied"
    assert sent(asked_clerk)[-1]["content"].endswith("denied. too much")


async def test_without_a_message_in_between_nothing_is_noted(asked_clerk: Desk) -> None:
    await approve(asked_clerk)
    assert text_of((await asked_clerk.room.transcript())[-1]) == "It says refunded A-1."
    assert sent(asked_clerk)[-1]["role"] == "tool"


async def test_a_message_that_waits_when_it_is_approved_is_answered_first(asked_clerk: Desk) -> None:
    await asked_clerk.room.admit(NEXT)
    await approve(asked_clerk)
    assert EFFECTS == [("refund", "A-1", 5, "refund:A-1")]
    assert [text_of(m) for m in (await asked_clerk.room.transcript())[2:4]] == [NEXT, "Something else."]
    [turn] = await continuations()
    assert status_of(turn) == "completed"
    assert call_texts.NOT_RUN not in str(await part(asked_clerk))


async def test_it_waits_for_every_question_of_its_answer(make_room: MakeRoom) -> None:
    desk = Desk(make_room("clerk"))
    await grant(desk)
    two = REFUND.replace("say:", 'call tool refund {"order": "B-2", "amount": 1} id=two\nsay:')
    await desk.room.say(two)
    await desk.room.say(NEXT)
    first, second = await desk.room.handle.pending_approvals()
    assert await desk.room.handle.approve_execution(first.id)
    await desk.room.say(NEXT)
    assert EFFECTS == []
    assert await desk.room.handle.approve_execution(second.id)
    await run_until_idle(skip_delays=True)
    assert sorted(effect[1] for effect in EFFECTS) == ["A-1", "B-2"]
    assert len(await continuations()) == 1


async def test_of_many_decisions_at_once_one_counts(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    [asked] = await asked_clerk.room.handle.pending_approvals()
    decide = asked_clerk.room.handle.approve_execution, asked_clerk.room.handle.reject_execution
    counted = await asyncio.gather(*(decide[number % 2](asked.id) for number in range(6)))
    await run_until_idle(skip_delays=True)
    assert counted.count(True) == 1
    assert len(await continuations()) == 1
    assert len(EFFECTS) <= 1


async def test_of_two_questions_of_one_call_id_the_named_one_is_decided(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(REFUND.replace("A-1", "B-2"))
    first, second = await asked_clerk.room.handle.pending_approvals()
    await db(lambda: ToolCallRecord.objects.update(call_id=first.call_id))
    assert await asked_clerk.room.handle.reject_execution(first.id)
    assert await asked_clerk.room.handle.approve_execution(second.id)
    await run_until_idle(skip_delays=True)
    assert [effect[1] for effect in EFFECTS] == ["B-2"]


async def test_its_time_ends_it_as_usual(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    row = await db(ToolCallRecord.objects.get)
    past = timezone.now() - timedelta(seconds=1)
    await db(lambda: ToolCallRecord.objects.update(expires_at=past))
    assert await db(expire_question, row.pk, row.scope)
    await run_until_idle(skip_delays=True)
    assert (await part(asked_clerk))["state"] == "output-denied"
    assert await continuations() == []
    await asked_clerk.room.say(NEXT)
    assert "Nobody answered in time." in result_of(asked_clerk)


@pytest.mark.parametrize("step", ["approved:", "model:0"])
async def test_a_worker_killed_after_the_action_has_one_effect_and_notes_it(asked_clerk: Desk, step: str) -> None:
    await asked_clerk.room.say(NEXT)
    row = await db(ToolCallRecord.objects.get)
    with crash_after(f"{step}{row.pk}" if step.endswith(":") else step):
        await approve(asked_clerk)
    assert len(EFFECTS) == 1
    [turn] = await continuations()
    assert status_of(turn) == "completed"
    assert sent(asked_clerk)[-1]["content"].endswith("refunded A-1")


async def test_an_approved_action_whose_continuation_is_stopped_does_not_run_later(asked_clerk: Desk) -> None:
    await asked_clerk.room.say(NEXT)
    [asked] = await asked_clerk.room.handle.pending_approvals()
    assert await asked_clerk.room.handle.approve_execution(asked.id)
    [turn] = await continuations()
    assert await db(cancel_turn, turn.pk)
    await asked_clerk.room.say(NEXT)
    assert EFFECTS == []
    assert (await part(asked_clerk))["errorText"] == call_texts.NOT_RUN


# --- a question that messages were waiting behind ---------------------------------------------------------------------


async def test_a_message_that_waited_already_does_not_decide_a_question(make_room: MakeRoom) -> None:
    desk = Desk(make_room("banker"))
    await desk.room.admit('call tool pay {"amount": 3} id=one\nsay: {results}')
    later = await desk.room.admit("say: And this.")
    await run_until_idle(skip_delays=True)
    assert (await part(desk))["state"] == "approval-requested"
    assert status_of(await desk.room.turn(later.turn.pk)) == "completed"
    assert text_of((await desk.room.transcript())[-1]) == "And this."
    assert [event[0] for event in await desk.events("one")] == ["asked"]
    await approve(desk)
    assert CALLS == [(3, 0)]
    assert (await part(desk))["output"] == "paid 3"


async def test_one_that_is_written_at_a_question_still_passes_it_by(make_room: MakeRoom) -> None:
    desk = Desk(make_room("banker"))
    await desk.room.say('call tool pay {"amount": 3} id=one\nsay: {results}')
    await desk.room.say(NEXT)
    assert (await part(desk))["state"] == "output-denied"
