"""Messages between agents: a row in an inbox, a turn that takes what is there, and answers in its last commit."""

from typing import Any

import pytest

from chat.conversations.fork import fork_instance
from chat.errors import AgentCallFailed, AgentNotFound
from chat.instance.handle import AgentHandle
from chat.instances.rows import find_instance
from chat.models import AgentInstance, AgentMessage, Turn
from chat.turns.admission.stop import cancel_turn
from fibers.models import Fiber
from fibers.process.runs import registry as running
from fibers.services import expire_wait
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.talking import ask, letters, member, turns_in
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)


async def outputs(room: Room) -> dict[str, Any]:
    parts = [part for message in await room.transcript() for part in message["parts"]]
    return {part["toolCallId"]: part.get("output", part.get("errorText")) for part in parts if "toolCallId" in part}


async def test_a_message_is_answered_in_a_conversation_of_the_agent(make_room: MakeRoom) -> None:
    room = make_room("lead")
    number = await room.handle.send_message("reader", "say: Read it.", request_id="first")
    assert await room.handle.send_message("reader", "say: Read it.", request_id="first") == number
    assert await room.handle.has_pending_work("reader")
    await run_until_idle()
    assert not await room.handle.has_pending_work("reader")
    assert await room.handle.watch_for_response("first") == "Read it."
    asked, answer = await letters(room)
    [turn] = await turns_in(room, "reader")
    assert (asked.sender, asked.target, asked.turn_id) == ("", "reader", turn.pk)
    assert (answer.sender, answer.in_reply_to, answer.role) == ("reader", "first", "assistant")
    assert asked.processed_at is not None
    assert answer.processed_at is not None
    assert not await turns_in(room, "lead")  # the answer begins no turn


async def test_a_fork_has_what_was_said_and_an_empty_inbox(make_room: MakeRoom) -> None:
    """A message that waits is answered where it was sent: a copy of it would be answered twice, and by another room."""
    room = make_room("lead")
    await room.handle.add_messages("Hello.")
    await room.handle.send_message("reader", "say: Read it.", request_id="first")
    original = await db(find_instance, room.key)
    assert original is not None
    [message] = await room.transcript()
    fork = await db(fork_instance, original, message["id"])
    await run_until_idle()
    assert await room.handle.watch_for_response("first") == "Read it."
    assert [row.room_id for row in await letters(room)] == [original.pk] * 2
    assert not await db(AgentMessage.objects.filter(room=fork).exists)
    assert not await db(AgentInstance.objects.filter(parent=fork).exists)


async def test_what_is_there_is_taken_together_and_what_comes_later_is_for_the_next_turn(make_room: MakeRoom) -> None:
    room = make_room("lead")
    for text in ("call tool linger {} id=hold\nsay: Both.", "And this.", "And that."):
        await room.handle.send_message("reader", text)
    await run_until_idle()
    [first] = await turns_in(room, "reader")
    assert first.fiber.status == "parked"
    await room.handle.send_message("reader", "say: Later.")
    await room.handle.send_message("reader", "say: Later still.")
    assert len(await turns_in(room, "reader")) == 2  # one waits, whatever comes
    assert await AgentHandle(member(room, "reader")).answer_wait("hold", "go", wait="question")
    await run_until_idle()
    taken = [row.turn_id for row in await letters(room) if row.role == "user"]
    second = (await turns_in(room, "reader"))[1]
    assert taken == [first.pk] * 3 + [second.pk] * 2
    assert len([row for row in await letters(room) if row.role == "assistant"]) == 2


async def test_more_than_fifty_messages_are_two_turns(make_room: MakeRoom) -> None:
    room = make_room("lead")
    for number in range(53):
        await room.handle.send_message("reader", f"say: {number}.")
    await run_until_idle()
    turns = await turns_in(room, "reader")
    counts = [sum(row.turn_id == turn.pk and row.role == "user" for row in await letters(room)) for turn in turns]
    assert counts == [50, 3]


async def test_a_call_waits_without_a_worker_and_gets_the_reply(make_room: MakeRoom) -> None:
    room = make_room("lead")
    held = ask("reader", "call tool linger {} id=hold\nsay: It is {result}.")
    turn = await room.say(f"{held}\nsay: {{result}}")
    assert turn.fiber.status == "parked"
    assert turn.fiber.waits[0]["label"] == "Reader"
    assert not running.snapshot()
    assert await AgentHandle(member(room, "reader")).answer_wait("hold", "blue", wait="question")
    await run_until_idle()
    assert status_of(await room.turn(turn.pk)) == "completed"
    assert await outputs(room) == {"one": {"response": "It is blue."}}
    assert len(await turns_in(room, "lead")) == 1  # the reply is the result of the call, and begins no turn
    [request, reply] = await letters(room)
    assert (request.sender, request.asked_in_id, request.call_chain) == ("lead", turn.pk, ["lead"])
    assert reply.in_reply_to == request.request_id
    assert MODELS["reader"].requests[-1]["messages"][-3]["content"].startswith("[lead]\n")


async def test_two_callers_of_one_turn_get_a_reply_each(make_room: MakeRoom) -> None:
    room = make_room("lead")
    turn = await room.say(f"{ask('reader', 'say: a', 'a')}\n{ask('reader', 'say: b', 'b')}\nsay: done")
    assert status_of(turn) == "completed"
    found = await outputs(room)
    assert set(found) == {"a", "b"}
    assert all(each["response"] for each in found.values())


async def test_loops_are_refused_at_once(make_room: MakeRoom) -> None:
    room = make_room("lead")
    back = ask("lead", "say: never", "back") + "\nsay: {result}"
    turn = await room.say(f"{ask('librarian', back)}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert "would be a loop" in (await outputs(room))["one"]["response"]
    assert "would be a loop" in str(MODELS["current"].requests or MODELS["librarian"].requests[-1])


async def test_agents_that_would_wait_for_each_other_are_refused(make_room: MakeRoom) -> None:
    room = make_room("lead")
    slowly = "call tool linger {} id=hold\n"
    await room.handle.send_message("reader", slowly + ask("librarian", "say: for the reader", "r") + "\nsay: {results}")
    await room.handle.send_message("librarian", ask("reader", "say: for the librarian", "l") + "\nsay: {results}")
    await run_until_idle()
    assert await AgentHandle(member(room, "reader")).answer_wait("hold", "go", wait="question")
    await run_until_idle()
    assert {status_of(turn) for turn in [*await turns_in(room, "reader"), *await turns_in(room, "librarian")]} == {
        "completed"
    }
    assert any("wait for the other" in row.content for row in await letters(room))


async def test_a_reply_of_another_form_is_an_error_of_the_tool(make_room: MakeRoom) -> None:
    room = make_room("lead")
    await room.say(f"{ask('counter', 'say: ' + '{' + chr(34) + 'sum' + chr(34) + ': 3}', 'right')}\nsay: {{results}}")
    await room.say(f"{ask('counter', 'say: three', 'wrong')}\nsay: {{results}}")
    found = await outputs(room)
    assert found["right"] == {"sum": 3}
    assert "another form" in found["wrong"]


async def test_a_silent_agent_is_an_error_and_its_late_reply_goes_into_the_inbox(make_room: MakeRoom) -> None:
    room = make_room("lead")
    held = "call tool linger {} id=hold\nsay: say: I hear it."
    turn = await room.say(f"{ask('librarian', held)}\nsay: {{result}}")
    assert turn.fiber.waits[0]["seconds"] == 5.0
    await run_until_idle(skip_delays=True)
    await db(_expire, turn.fiber.pk)
    await run_until_idle()
    assert "did not answer within 5 s" in (await outputs(room))["one"]
    assert await AgentHandle(member(room, "librarian")).answer_wait("hold", "late", wait="question")
    await run_until_idle()
    reply = (await letters(room))[1]
    assert reply.late
    assert reply.processed_at is not None
    assert [turn.trigger for turn in await turns_in(room, "lead")] == ["submit-message", "program"]
    assert text_of((await room.transcript())[-1]) == "I hear it."


def _expire(fiber_id: str) -> None:
    [wait] = Fiber.objects.get(pk=fiber_id).waits
    assert expire_wait(fiber_id, wait["key"])


async def test_an_agent_that_fails_is_an_error_of_the_tool_at_once(make_room: MakeRoom) -> None:
    room = make_room("lead")
    turn = await room.say(f"{ask('reader', 'error 400')}\nsay: on")
    assert status_of(turn) == "completed"
    assert (await outputs(room))["one"]
    assert (await letters(room))[1].role == "system"
    await room.handle.send_message("reader", "error 400", request_id="mine")
    await run_until_idle()
    with pytest.raises(AgentCallFailed):
        await room.handle.watch_for_response("mine")
    with pytest.raises(AgentCallFailed, match="did not answer"):
        await room.handle.watch_for_response("nothing", seconds=0.01)


async def test_a_stop_of_the_caller_reaches_whom_it_asks(make_room: MakeRoom) -> None:
    room = make_room("lead")
    nested = ask("librarian", "call tool linger {} id=hold\nsay: done", "two")
    turn = await room.say(f"{ask('reader', nested + chr(10) + 'say: done')}\nsay: never")
    assert await db(cancel_turn, turn.pk)
    await run_until_idle()
    for agent in ("lead", "reader", "librarian"):
        assert [status_of(each) for each in await turns_in(room, agent)] == ["aborted"], agent


async def test_a_stopped_turn_that_never_began_says_so_to_who_asked(make_room: MakeRoom) -> None:
    room = make_room("lead")
    await room.handle.send_message("reader", "call tool linger {} id=hold\nsay: done")
    await run_until_idle()
    turn = await room.say(f"{ask('reader', 'say: never')}\nsay: on")
    waiting = (await turns_in(room, "reader"))[1]
    assert await db(cancel_turn, waiting.pk)
    await run_until_idle()
    assert status_of(await room.turn(turn.pk)) == "completed"
    assert "stopped" in (await outputs(room))["one"]


async def test_what_no_agent_can_take_is_refused(make_room: MakeRoom) -> None:
    room = make_room("lead")
    with pytest.raises(AgentNotFound):
        await room.handle.send_message("nobody-there", "hi")
    assert not await db(AgentMessage.objects.exists)


@pytest.mark.long_for("model:1", "call:one", "begin")
@pytest.mark.parametrize("step", ["model:0", "model:1", "call:one", "final", "begin"])
async def test_a_crash_answers_once(make_room: MakeRoom, step: str) -> None:
    room = make_room("lead")
    with crash_after(step, times=2):
        turn = await room.say(f"{ask('reader', 'say: Read.')}\nsay: {{result}}")
    assert status_of(turn) == "completed"
    assert await outputs(room) == {"one": {"response": "Read."}}
    assert [row.role for row in await letters(room)] == ["user", "assistant"]
    assert await db(Turn.objects.count) == 2


async def test_messages_of_a_paused_agent_pile_up_until_it_goes_on(make_room: MakeRoom) -> None:
    room = make_room("lead")
    await room.handle.send_message("reader", "say: Before.", request_id="before")
    assert await room.handle.pause_agent("reader")
    assert not await room.handle.pause_agent("reader")
    await run_until_idle()
    await room.handle.send_message("reader", "say: After.", request_id="after")
    await run_until_idle()
    assert await room.handle.has_pending_work("reader")
    assert not running.snapshot()
    assert [turn.started_at for turn in await turns_in(room, "reader")] == [None]
    assert await room.handle.continue_agent("reader")
    assert not await room.handle.continue_agent("counter")
    await run_until_idle()
    assert await room.handle.watch_for_response("after") == await room.handle.watch_for_response("before")


async def test_what_an_agent_sends_by_itself_is_a_message(make_room: MakeRoom) -> None:
    room = make_room("lead")
    script = 'call tool tell {"agent": "lead", "text": "say: I hear you."} id=t\nsay: told'
    await room.handle.send_message("reader", script)
    await run_until_idle()
    said = [(row.sender, row.target, row.role, row.content) for row in await letters(room)]
    assert said[1] == ("reader", "lead", "user", "say: I hear you.")
    assert said[3] == ("lead", "reader", "assistant", "I hear you.")  # kept, and no turn of the reader's
    assert [text_of(message) for message in await room.transcript()] == ["[reader]\nsay: I hear you.", "I hear you."]
    assert len(await turns_in(room, "reader")) == 1


async def test_a_tool_and_an_agent_of_one_name_are_refused(make_room: MakeRoom) -> None:
    turn = await make_room("confused").say("say: never")
    assert status_of(turn) == "error"
    assert turn.error_code == "turn_config_invalid"
