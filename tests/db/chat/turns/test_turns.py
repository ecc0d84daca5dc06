"""A turn from admission to the stored answer, in one process: fibers, log, loop, session."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.models import AgentInstance, StreamSegment
from chat.streams.reader import read
from chat.turns.admission.intake import Edit, Regenerate, Submit
from chat.turns.admission.stop import cancel_turn, clear_instance
from fibers.testing import run_until_idle
from sessions_app.core.messages.shapes import Message, NewMessage
from tests.db.chat.turns.agents.everyday import CALLS, Plain, add
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of, text_of


async def test_two_turns_accumulate(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("say: one")
    await room.say("say: two")
    assert await room.texts() == [
        ("user", "say: one"),
        ("assistant", "one"),
        ("user", "say: two"),
        ("assistant", "two"),
    ]


async def test_the_answer_keeps_the_id_that_the_stream_announced(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say("say: hello")
    records = await read(turn.pk, 0)
    assert load(records[0].text) == {"type": "start", "messageId": turn.assistant_id}
    assert (await room.transcript())[-1]["id"] == turn.assistant_id
    assert status_of(turn) == "completed"
    assert turn.finished_at is not None


async def test_tools_run_and_their_outputs_are_stored(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say('call tool add {"a": 2, "b": 3}')
    assert CALLS == [(2, 3)]
    parts = (await room.transcript())[-1]["parts"]
    call = next(p for p in parts if "toolCallId" in p)
    assert (call["state"], call["output"], call["toolName"]) == ("output-available", 5, "add")
    assert text_of({"id": "", "role": "assistant", "parts": parts})


async def test_results_reach_the_model_in_the_order_of_their_calls_whichever_ends_first(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say('call tool sleep {} id=one\ncall tool add {"a": 1, "b": 1} id=two\nsay: done')
    chunks = [load(record.text) for record in await read(turn.pk, 0)]
    ended = [chunk["toolCallId"] for chunk in chunks if chunk["type"] in {"tool-output-available", "tool-output-error"}]
    sent = [message["tool_call_id"] for message in room.model.requests[-1]["messages"] if message["role"] == "tool"]
    assert (ended, sent) == (["two", "one"], ["one", "two"])


async def test_tools_are_asked_for_in_every_turn(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room()
    offered: list[list[Any]] = [[add], [], [add]]
    monkeypatch.setattr(Plain, "get_tools", lambda _agent: offered.pop(0))
    for _ in range(3):
        await room.say("say: hi")
    sent = [[tool["name"] for tool in request.get("tools", [])] for request in room.model.requests]
    assert sent == [["add"], [], ["add"]]


async def test_a_failing_tool_is_a_result(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say("call tool fail {}\nsay: It said: {result}.")
    message = (await room.transcript())[-1]
    call = next(p for p in message["parts"] if "toolCallId" in p)
    assert (call["state"], call["errorText"]) == ("output-error", "the tool broke")
    assert (status_of(turn), text_of(message)) == ("completed", "It said: Error: the tool broke.")
    [row] = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=turn.pk)))
    assert (row.status, row.output) == ("failed", "the tool broke")


async def test_a_tool_that_takes_too_long_is_a_result(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("call tool sleep {}")
    call = next(p for p in (await room.transcript())[-1]["parts"] if "toolCallId" in p)
    assert "did not finish within 0.05 s" in call["errorText"]


async def test_no_model(make_room: MakeRoom) -> None:
    """A subclass without `get_model` ends the turn with a text that tells the developer; the agent keeps serving."""
    room = make_room("no-model")
    turn = await room.say("hi")
    assert status_of(turn) == "error"
    assert "Override get_model() in NoModel" in turn.error_text
    second = await room.say("again")
    assert status_of(second) == "error"
    assert [role for role, _ in await room.texts()] == ["user", "user"]


async def test_duplicate_user_id(make_room: MakeRoom) -> None:
    room = make_room()
    message: Message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "say: A"}]}
    await room.say(Submit(message=message))
    await room.say(Submit(message={**message, "parts": [{"type": "text", "text": "say: B"}]}))
    users = [m for m in await room.transcript() if m["role"] == "user"]
    assert [text_of(m) for m in users] == ["say: A"]


async def test_the_same_request_twice_is_one_turn(make_room: MakeRoom) -> None:
    room = make_room()
    first = await room.admit("say: once", request_id="r1")
    second = await room.admit("say: twice", request_id="r1")
    assert (second.turn.pk, second.is_new) == (first.turn.pk, False)
    await run_until_idle()
    assert await room.texts() == [("user", "say: once"), ("assistant", "once")]


async def test_queued_submits_alternate_with_their_answers(make_room: MakeRoom) -> None:
    room = make_room()
    await room.admit("say: one")
    await room.admit("say: two")
    assert [(text_of(m), m.get("metadata", {}).get("queued")) for m in await room.transcript()] == [
        ("say: one", True),
        ("say: two", True),
    ]
    await run_until_idle()
    assert [t for _, t in await room.texts()] == ["say: one", "one", "say: two", "two"]


async def test_an_edit_makes_a_sibling_and_is_answered(make_room: MakeRoom) -> None:
    room = make_room()
    first = await room.say("say: one")
    await room.say("say: two")
    message: NewMessage = {"role": "user", "parts": [{"type": "text", "text": "say: changed"}]}
    await room.say(Edit(message_id=first.input_ids[0], message=message))
    assert [t for _, t in await room.texts()] == ["say: changed", "changed"]


async def test_regenerate_makes_a_sibling_answer(make_room: MakeRoom) -> None:
    room = make_room()
    first = await room.say("say: one")
    again = await room.say(Regenerate(message_id=first.assistant_id))
    transcript = await room.transcript()
    assert [text_of(m) for m in transcript] == ["say: one", "one"]
    assert transcript[-1]["id"] == again.assistant_id != first.assistant_id


async def test_a_cancelled_queued_turn_is_aborted_and_its_message_stays(make_room: MakeRoom) -> None:
    room = make_room()
    await room.admit("say: one")
    second = await room.admit("say: two")
    assert await db(cancel_turn, second.turn.pk) is True
    third = await room.admit("say: three")
    marks = [message.get("metadata", {}).get("stopped", False) for message in await room.transcript()]
    assert marks == [False, True, False]  # it waits for nothing, and clients do not say that it does
    await run_until_idle()
    assert all("metadata" not in m or "queued" not in m["metadata"] for m in await room.transcript())
    assert status_of(await room.turn(second.turn.pk)) == "aborted"
    assert status_of(await room.turn(third.turn.pk)) == "completed"
    # The model sees both unanswered messages, in order.
    assert [t for _, t in await room.texts()] == ["say: one", "one", "say: two", "say: three", "twothree"]


async def test_clear_skips_queued_turns_and_empties_the_path(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("say: one")
    queued = await room.admit("say: two")
    await db(clear_instance, room.key)
    await run_until_idle()
    assert status_of(await room.turn(queued.turn.pk)) == "skipped"
    assert await room.transcript() == []
    await room.say("say: three")
    assert [t for _, t in await room.texts()] == ["say: three", "three"]


async def test_usage_and_steps_are_on_the_turn(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say('call tool add {"a": 1, "b": 1}')
    assert turn.step_count == 2
    assert turn.output_tokens > 0
    assert turn.model_name


async def test_rows_appear_on_the_first_write(make_room: MakeRoom) -> None:
    room = make_room()
    assert await room.transcript() == []
    assert await db(AgentInstance.objects.count) == 0
    await room.say("say: hi")
    assert await db(AgentInstance.objects.count) == 1


async def test_the_cold_log_holds_the_whole_turn(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say("say: a few words here")
    hot = [r.text for r in await read(turn.pk, 0)]
    rows = await db(lambda: list(StreamSegment.objects.filter(stream=turn.pk).order_by("first_offset")))
    assert [line for row in rows for line in row.data.split("\n")] == hot


async def test_two_users_have_rooms_of_their_own(make_room: MakeRoom) -> None:
    room = make_room()
    bob = await db(User.objects.create_user, "bob")
    his = Room(InstanceKey(owner_id=bob.pk, agent=room.key.agent, name=room.key.name), model=room.model)
    await room.say("say: hers")
    assert await his.transcript() == []
    await his.say("say: his")
    assert [text for _, text in await room.texts()] == ["say: hers", "hers"]
    assert [text for _, text in await his.texts()] == ["say: his", "his"]


async def test_a_failed_turn_ends_at_once(make_room: MakeRoom) -> None:
    """A turn whose end is recorded is not tried again: its failure is what people see."""
    room = make_room()
    admission = await room.admit("error 400")
    await run_until_idle()
    assert status_of(await room.turn(admission.turn.pk)) == "error"
