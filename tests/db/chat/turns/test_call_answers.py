"""Client tools and approvals, without a socket."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from chat.errors import CallChanged, InputInvalid
from chat.models import AgentInstance, Turn
from chat.operations.removal import delete_instance
from chat.turns.admission.continuation import expire_question
from chat.turns.admission.intake import ClientArray
from chat.turns.admission.stop import cancel_turn, clear_instance
from chat.turns.admission.tool_answers import has_pending_interaction
from fibers.models import Fiber
from fibers.testing import run_until_idle
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.services import append_messages
from tests.db.chat.turns.agents.answering import GATE, Desk, desk, last_text, on_record, turns_of
from tests.db.chat.turns.agents.everyday import CALLS, SEEN
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import fingerprint
from tools_app.models import ApprovalEvent, ToolCallRecord

from .conftest import Room, status_of

__all__ = ["desk"]  # a fixture

ONE = "call tool where {}\nsay: You are at {result}."
TWO = 'call tool where {"n": 1}\ncall tool where {"n": 2}\nsay: Both: {results}.'
PAY = 'call tool pay {"amount": 5}\nsay: It says {result}.'


async def test_calls_move_through_their_states_in_order(desk: Desk) -> None:
    turn = await desk.room.say(ONE)
    assert status_of(turn) == "completed"
    [call] = await desk.calls()
    assert (await desk.part(call))["state"] == "input-available"
    assert not (await desk.reply("nobody-asked", output=1)).is_new
    assert (await desk.reply(call, output={"city": "Ghent"})).is_new
    part = await desk.part(call)
    assert (part["state"], part["output"], part["preliminary"]) == ("output-available", {"city": "Ghent"}, False)
    assert not (await desk.reply(call, output="second")).is_new
    assert (await desk.part(call))["output"] == {"city": "Ghent"}
    assert "Ghent" in await last_text(desk.room)


@pytest.mark.parametrize(("text", "shown"), [("no signal", "no signal"), ("", "Tool execution denied by user")])
async def test_an_error_is_a_result_with_a_text(desk: Desk, text: str, shown: str) -> None:
    await desk.room.say(ONE)
    [call] = await desk.calls()
    await desk.reply(call, error_text=text, continues=False)
    part = await desk.part(call)
    assert (part["state"], part["errorText"]) == ("output-error", shown)


async def test_approval_keeps_what_was_asked(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    asked = await desk.part(call)
    assert asked["state"] == "approval-requested"
    await desk.reply(call, is_approved=True, continues=False)
    part = await desk.part(call)
    assert part["state"] == "approval-responded"
    assert part["approval"] == {**asked["approval"], "approved": True}
    assert not (await desk.reply(call, is_approved=False, continues=False)).is_new


async def test_nothing_continues_before_the_last_answer(desk: Desk) -> None:
    await desk.room.say(TWO)
    fast, slow = await desk.calls()
    assert (await desk.reply(fast, output="fast")).turn is None
    assert len(await turns_of(desk.room)) == 1
    assert (await desk.part(slow))["state"] == "input-available"
    assert (await desk.reply(slow, output="slow")).turn is not None
    assert [status_of(turn) for turn in await turns_of(desk.room)] == ["completed", "completed"]
    assert [(await desk.part(call))["output"] for call in (fast, slow)] == ["fast", "slow"]
    said = await last_text(desk.room)
    assert "fast" in said
    assert "slow" in said


async def test_a_turn_that_waits_for_a_person_is_over(desk: Desk) -> None:
    """No one holds anything for it: no fiber runs, no lease; the question is a part of the stored message."""
    await desk.room.say(PAY)
    [turn] = await turns_of(desk.room)
    assert (turn.fiber.status, turn.fiber.lease_until) == ("completed", None)
    assert not await db(Fiber.objects.filter(status__in=["running", "parked"]).exists)
    [call] = await desk.calls()
    assert (await desk.part(call))["state"] == "approval-requested"


async def test_answers_at_the_same_moment_are_all_kept(desk: Desk) -> None:
    await desk.room.say("\n".join(f'call tool where {{"n": {n}}}' for n in range(6)) + "\nsay: All: {results}.")
    calls = await desk.calls()
    replies = [desk.reply(call, output=f"place {n}", runs=False) for n, call in enumerate(calls)]
    done = await asyncio.gather(*replies)
    await run_until_idle(skip_delays=True)
    assert sum(reply.turn is not None for reply in done) == 1
    assert [(await desk.part(call))["output"] for call in calls] == [f"place {n}" for n in range(6)]
    assert len(await turns_of(desk.room)) == 2


async def test_server_and_client_calls_side_by_side(desk: Desk) -> None:
    await desk.room.say(TWO)
    first, second = await desk.calls()
    await desk.reply(first, output="here")
    assert (await desk.row(first)).continues  # the wish is stored, so that it outlives the process that took it
    replied = await desk.reply(second, error_text="no", continues=False)
    assert replied.turn is not None
    assert len(await turns_of(desk.room)) == 2


async def test_a_failure_alone_continues_nothing(desk: Desk) -> None:
    await desk.room.say(ONE)
    [call] = await desk.calls()
    assert (await desk.reply(call, error_text="no", continues=False)).turn is None
    assert len(await turns_of(desk.room)) == 1


async def test_result_before_persist(desk: Desk) -> None:
    """The browser answers while another call of the same step still runs."""
    GATE["open"] = asyncio.Event()
    await desk.room.admit("call tool where {}\ncall tool linger {}\nsay: {results}.")
    with on_record("call:") as handed_out:
        running = asyncio.create_task(run_until_idle(skip_delays=True))
        await asyncio.wait_for(handed_out.wait(), 10)
    call = await db(lambda: ToolCallRecord.objects.get(tool_name="where").call_id)
    replied = await desk.reply(call, output="early", runs=False)
    assert replied.is_new
    assert replied.turn is None
    GATE["open"].set()
    await asyncio.wait_for(running, 10)
    assert (await desk.part(call))["output"] == "early"
    assert [status_of(each) for each in await turns_of(desk.room)] == ["completed", "completed"]
    assert "early" in await last_text(desk.room)


async def test_approved_tool_runs_once(desk: Desk) -> None:
    await desk.room.say(PAY)
    assert CALLS == []
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True)
    assert CALLS == [(5, 0)]
    part = await desk.part(call)
    assert (part["state"], part["output"]) == ("output-available", "paid 5")
    assert "paid 5" in await last_text(desk.room)
    assert [kind for kind, _ in SEEN if kind.endswith("tool_call")] == ["before_tool_call", "after_tool_call"]
    turns = await turns_of(desk.room)
    assert turns[1].parent_id == turns[0].pk
    continuations = [seen.continuation for kind, seen in SEEN if kind == "before_turn"]
    assert continuations == [False, True]


async def test_a_denied_tool_never_runs_and_the_model_sees_the_denial(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    await desk.reply(call, is_approved=False, reason="too dear")
    assert CALLS == []
    assert (await desk.part(call))["state"] == "output-denied"
    assert "too dear" in await last_text(desk.room)


async def test_the_gate_still_decides_after_the_approval(desk: Desk) -> None:
    await desk.room.say('call tool pay {"amount": 99}\nsay: {result}.')
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True)
    assert CALLS == []
    assert (await desk.part(call))["output"] == "the vault is shut"


@pytest.mark.parametrize(("amount", "is_asked"), [(3, False), (30, True), (13, True)])
async def test_a_rule_decides_whether_a_person_is_asked(desk: Desk, amount: int, is_asked: bool) -> None:
    """Thirteen: the rule itself fails, and then a person decides."""
    await desk.room.say(f'call tool spend {{"amount": {amount}}}')
    [call] = await desk.calls()
    assert (await desk.part(call))["state"] == ("approval-requested" if is_asked else "output-available")
    assert [seen for kind, seen in SEEN if kind == "asked"] == [({"amount": amount}, desk.room.key.owner_id)]


async def test_the_approval_survives_a_crash_and_the_tool_runs_once_more_under_the_same_key(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True, runs=False)
    with on_record("approved:", dies=True):
        await run_until_idle(skip_delays=True)
    assert CALLS == [(5, 0)]
    assert (await desk.part(call))["output"] == "paid 5"
    assert "paid 5" in await last_text(desk.room)


async def test_the_question_is_asked_once_whatever_crashes(desk: Desk) -> None:
    await desk.room.admit(PAY)
    with on_record("call:", dies=True):
        await run_until_idle(skip_delays=True)
    [call] = await desk.calls()
    assert (await desk.part(call))["state"] == "approval-requested"
    assert [kind for kind, _, _ in await desk.events(call)] == ["asked"]


async def test_several_questions_are_one_continuation(desk: Desk) -> None:
    await desk.room.say('call tool pay {"amount": 1}\ncall tool pay {"amount": 2}\nsay: {results}.')
    one, two = await desk.calls()
    await desk.reply(two, is_approved=True)
    assert CALLS == []
    await desk.reply(one, is_approved=False)
    assert CALLS == [(2, 0)]
    assert len(await turns_of(desk.room)) == 2


async def test_without_auto_continuation_a_request_runs_what_was_approved(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    assert (await desk.reply(call, is_approved=True, continues=False)).turn is None
    assert CALLS == []
    messages = await desk.room.transcript()
    await desk.room.say(ClientArray(messages=messages))
    assert CALLS == [(5, 0)]
    assert "paid 5" in await last_text(desk.room)


async def test_events_say_who_decided_what_and_why(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    desk.via = "api"
    await desk.reply(call, is_approved=False, reason="not today")
    events = await db(lambda: list(ApprovalEvent.objects.filter(call__call_id=call)))
    assert await desk.events(call) == [("asked", "turn", ""), ("denied", "api", "not today")]
    assert [event.actor_id for event in events] == [None, desk.room.key.owner_id]
    assert {event.input_hash for event in events} == {fingerprint({"amount": 5})}
    with pytest.raises(TypeError):
        await db(events[0].save)
    with pytest.raises(TypeError):
        await db(events[0].delete)


async def test_a_decision_is_bound_to_the_arguments_that_were_shown(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    with pytest.raises(CallChanged):
        await desk.reply(call, is_approved=True, input_hash=fingerprint({"amount": 1}))
    assert (await desk.part(call))["state"] == "approval-requested"
    await desk.reply(call, is_approved=True, input_hash=fingerprint({"amount": 5}))
    assert CALLS == [(5, 0)]


async def test_an_error_for_a_question_denies_it(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    assert (await desk.reply(call, error_text="not now", continues=False)).is_new
    part = await desk.part(call)
    assert part["state"] == "output-denied"
    assert (part["approval"]["approved"], part["approval"]["reason"]) == (False, "not now")
    assert CALLS == []


async def test_a_client_cannot_give_the_result_of_our_tools(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    assert not (await desk.reply(call, output="paid a million")).is_new
    await desk.reply(call, is_approved=True, continues=False)
    assert not (await desk.reply(call, output="paid a million")).is_new
    assert (await desk.part(call))["state"] == "approval-responded"


async def test_a_new_message_settles_what_is_open(desk: Desk) -> None:
    await desk.room.say('call tool where {}\ncall tool pay {"amount": 7}')
    where, question = await desk.calls()
    await desk.room.admit("say: never mind")
    asked, called = await desk.part(question), await desk.part(where)
    assert (asked["state"], asked["approval"]["reason"]) == (
        "output-denied",
        "The conversation went on without an answer.",
    )
    assert called["errorText"] == "The tool call was interrupted before a result was recorded."
    assert (await desk.events(question))[-1][0] == "superseded"
    assert not (await desk.reply(question, is_approved=True)).is_new
    await run_until_idle(skip_delays=True)
    assert await last_text(desk.room) == "never mind"
    assert CALLS == []


async def test_an_approved_call_that_did_not_run_is_reported_to_the_next_turn(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    await desk.reply(call, is_approved=True, continues=False)
    await desk.room.say("say: something else")
    assert (await desk.part(call))["errorText"] == (
        "The tool call was approved but did not run before the next turn started."
    )
    assert CALLS == []


async def test_a_continuation_whose_answer_was_left_is_skipped(desk: Desk) -> None:
    """A message was accepted before the answer came, and is sent first."""
    await desk.room.say(ONE)
    [call] = await desk.calls()
    instance = await db(lambda: AgentInstance.objects.get(name=desk.room.key.name))
    await desk.reply(call, output="x", runs=False)
    last = (await turns_of(desk.room))[-1]
    assert instance.session_id is not None
    message: Message = {"id": "u9", "role": "user", "parts": [{"type": "text", "text": "meanwhile"}]}
    await db(append_messages, instance.session_id, [message])
    await run_until_idle(skip_delays=True)
    assert status_of(await desk.room.turn(last.pk)) == "skipped"


async def test_the_clients_array_answers_and_goes_on(desk: Desk) -> None:
    await desk.room.say(ONE)
    messages = await desk.room.transcript()
    part = next(part for part in messages[-1]["parts"] if "toolCallId" in part)
    part |= {"state": "output-available", "output": "Oslo"}
    turn = await desk.room.say(ClientArray(messages=messages))
    assert turn.trigger == "continue"
    assert (await desk.part(part["toolCallId"]))["output"] == "Oslo"
    assert "Oslo" in await last_text(desk.room)
    assert len(await turns_of(desk.room)) == 2


async def test_the_clients_array_cannot_answer_other_arguments(desk: Desk) -> None:
    await desk.room.say(PAY)
    messages = await desk.room.transcript()
    part = next(part for part in messages[-1]["parts"] if "toolCallId" in part)
    part |= {"state": "approval-responded", "input": {"amount": 1}}
    part["approval"] = {**part["approval"], "approved": True}
    await desk.room.say(ClientArray(messages=messages))
    assert CALLS == []
    assert (await desk.part(part["toolCallId"]))["state"] == "output-denied"


async def test_client_tools_are_kept_until_replaced_or_cleared(desk: Desk) -> None:
    tools = [{"name": "paint", "description": "Paint.", "parameters": {"type": "object"}}]
    await desk.room.say("call tool paint {}", client_tools=tools)
    [call] = await desk.calls()
    assert (await desk.part(call))["state"] == "input-available"
    await desk.room.say("call tool paint {}")  # the next request does not speak of them
    again = (await desk.calls())[-1]
    assert (await desk.part(again))["state"] == "input-available"
    await desk.room.say("call tool paint {}", client_tools=[])
    gone = (await desk.calls())[-1]
    assert "There is no tool 'paint'" in (await desk.part(gone))["errorText"]
    await desk.room.say("call tool paint {}", client_tools=tools)
    await db(clear_instance, desk.room.key)
    assert (await db(lambda: AgentInstance.objects.get(name=desk.room.key.name))).client_tools == []


async def test_a_result_may_bring_other_tools(desk: Desk) -> None:
    await desk.room.say(ONE)
    [call] = await desk.calls()
    tools = [{"name": "paint", "description": "", "parameters": {}}]
    await desk.reply(call, output="x", client_tools=tools, runs=False)
    assert (await db(lambda: AgentInstance.objects.get(name=desk.room.key.name))).client_tools == tools


async def test_a_clients_tool_does_not_take_the_place_of_ours(desk: Desk) -> None:
    fake = [{"name": "add", "description": "Ours, honestly.", "parameters": {}}]
    await desk.room.say('call tool add {"a": 2, "b": 2}', client_tools=fake)
    [call] = await desk.calls()
    assert (await desk.part(call))["output"] == 4


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": f"t{n}"} for n in range(129)],
        [{"name": "big", "description": "x" * 600_000}],
        [{"name": "no spaces please"}],
    ],
)
async def test_too_many_or_unusable_client_tools_are_refused(desk: Desk, tools: list[Any]) -> None:
    with pytest.raises(InputInvalid):
        await desk.room.admit("say: hi", client_tools=tools)
    assert await desk.room.transcript() == []


async def test_a_question_expires_and_the_conversation_goes_on_with_the_next_message(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    rows = ToolCallRecord.objects.filter(call_id=call)
    assert (await desk.row(call)).expires_at is not None
    await db(partial(rows.update, expires_at=Now() - timedelta(seconds=1)))
    assert not (await desk.reply(call, is_approved=True)).is_new  # too late, even before anybody swept
    row = await desk.row(call)
    assert await db(expire_question, row.pk, row.scope)
    assert not await db(expire_question, row.pk, row.scope)
    part = await desk.part(call)
    assert (part["state"], part["approval"]["reason"]) == ("output-denied", "Nobody answered in time.")
    assert (await desk.events(call))[-1] == ("expired", "server", "Nobody answered in time.")
    assert len(await turns_of(desk.room)) == 1


async def test_a_question_expires_by_itself(desk: Desk, settings: Any) -> None:
    settings.THINK_APPROVAL_SECONDS = 0.2
    await desk.room.admit(PAY)
    await run_until_idle()
    [call] = await desk.calls()
    row = await desk.row(call)
    assert row.expires_at is not None
    while (await desk.part(call))["state"] != "output-denied":
        await run_until_idle()
    assert (await desk.part(call))["approval"]["reason"] == "Nobody answered in time."


@pytest.mark.parametrize("seconds", [0, 60.0])
async def test_how_long_a_question_stands(desk: Desk, settings: Any, seconds: float) -> None:
    settings.THINK_APPROVAL_SECONDS = seconds
    await desk.room.say(PAY)
    [call] = await desk.calls()
    expires = (await desk.row(call)).expires_at
    assert (expires is None) == (seconds == 0)
    assert await db(Fiber.objects.filter(name="chat.expire_question").exists) == (seconds > 0)


async def test_an_expiry_completes_a_batch_that_a_sibling_asked_to_continue(desk: Desk) -> None:
    await desk.room.say('call tool where {}\ncall tool pay {"amount": 7}\nsay: {results}.')
    where, question = await desk.calls()
    await desk.reply(where, output="home")
    await db(lambda: ToolCallRecord.objects.filter(call_id=question).update(expires_at=Now() - timedelta(seconds=1)))
    row = await desk.row(question)
    await db(expire_question, row.pk, row.scope)
    await run_until_idle(skip_delays=True)
    assert len(await turns_of(desk.room)) == 2


async def test_a_stopped_turn_is_not_continued(desk: Desk) -> None:
    admission = await desk.room.admit(ONE)
    await run_until_idle(skip_delays=True)
    rows = Turn.objects.filter(pk=admission.turn.pk)
    fiber_id = admission.turn.fiber_id
    await db(partial(Fiber.objects.filter(pk=fiber_id).update, status="cancelled"))
    assert await db(rows.exists)
    [call] = await desk.calls()
    assert (await desk.reply(call, output="late")).turn is None
    assert (await desk.part(call))["output"] == "late"


async def test_pending_interaction(desk: Desk) -> None:
    assert not await db(has_pending_interaction, desk.room.key)
    await desk.room.say(ONE)
    assert await db(has_pending_interaction, desk.room.key)
    [call] = await desk.calls()
    await desk.reply(call, output="x")
    assert not await db(has_pending_interaction, desk.room.key)


async def test_a_clear_forgets_what_is_open(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    await db(clear_instance, desk.room.key)
    assert not (await desk.reply(call, is_approved=True)).is_new
    assert CALLS == []
    assert not await db(has_pending_interaction, desk.room.key)


async def test_a_deleted_conversation_leaves_no_calls(desk: Desk) -> None:
    await desk.room.say(PAY)
    await desk.room.say('call tool add {"a": 1, "b": 1}')
    instance = await db(lambda: AgentInstance.objects.get(name=desk.room.key.name))
    await db(delete_instance, instance)
    assert await db(ToolCallRecord.objects.count) == 0
    assert await db(ApprovalEvent.objects.count) == 0


async def test_strangers_answer_nothing(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    bob = await db(partial(User.objects.create_user, "bob"))
    stranger = Desk(Room(desk.room.key.__class__(owner_id=bob.pk, agent="banker", name="room")))
    assert not (await stranger.reply(call, is_approved=True)).is_new
    assert (await desk.part(call))["state"] == "approval-requested"


async def test_a_refused_continuation_keeps_the_answer(desk: Desk, settings: Any) -> None:
    await desk.room.say(ONE)
    [call] = await desk.calls()
    settings.THINK_TURNS_PER_MINUTE = 1
    replied = await desk.reply(call, output="kept")
    assert replied.turn is None
    assert "within a minute" in str(replied.refusal)
    assert (await desk.part(call))["output"] == "kept"
    count = await db(lambda: AgentInstance.objects.filter(name=desk.room.key.name).values_list("turn_count")[0][0])
    assert count == 1  # no position is lost to a turn that never was


async def test_stop_while_an_approved_call_runs(desk: Desk) -> None:
    await desk.room.say(PAY)
    [call] = await desk.calls()
    replied = await desk.reply(call, is_approved=True, runs=False)
    assert replied.turn is not None
    await db(cancel_turn, replied.turn.pk)
    await run_until_idle(skip_delays=True)
    await desk.room.say("say: after the stop")
    assert (await desk.part(call))["state"] == "output-error"
    assert CALLS == []
