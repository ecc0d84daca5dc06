"""A stored call that no one will answer: settled before the next turn, sent to clients and to the log."""

import logging

import pytest

from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages.services import update_message
from thinkproject.kernel.aio import db

from .conftest import MakeRoom
from .notifications import listen, notification_of

ORPHAN: Part = {"type": "tool-add", "toolCallId": "c1", "state": "input-available", "input": '{"a": 1}'}


def with_orphan(message: Message) -> Message:
    return {**message, "parts": [*message["parts"], ORPHAN]}


async def test_a_call_without_a_result_is_settled_and_sent(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture
) -> None:
    room = make_room()
    first = await room.say("say: First.")
    await db(update_message, first.session_id, first.assistant_id, with_orphan)
    listening = await listen(room.key)
    caplog.set_level(logging.WARNING, logger="chat.turns.execution.begin")
    await room.say("say: Second.")
    [_, answer, *_] = await room.transcript()
    assert answer["parts"][-1] == ORPHAN | {
        "state": "output-error",
        "input": {"a": 1},
        "errorText": call_texts.INTERRUPTED,
    }
    [noted] = [record for record in caplog.records if getattr(record, "action", "") == "transcript_repaired"]
    assert noted.__dict__["message_ids"] == [first.assistant_id]
    assert (await notification_of(listening, "message.changed"))["message_id"] == first.assistant_id
    sent = room.model.requests[-1]["messages"]
    assert [message["role"] for message in sent[-3:]] == ["assistant", "tool", "user"]
    caplog.clear()
    await room.say("say: Third.")
    assert not [record for record in caplog.records if getattr(record, "action", "") == "transcript_repaired"]
