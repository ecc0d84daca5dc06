"""Mistakes of other systems that turns do not repeat."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.core.model.language_model import Finish, FinishReason, ModelEvent, ModelRequest, TextDelta
from chat.errors import AttachmentNotFound, QuotaExceeded
from chat.files import attachments
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Attachment, Turn
from chat.testing import worker
from chat.think import Think
from chat.turns.admission.stop import cancel_turn
from chat.turns.state.status import TurnStatus
from fibers.testing import run_until_idle
from sessions_app.models import Message
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

from .conftest import MakeRoom, Room, status_of, text_of
from .large_results import Large

BIG = "z" * 2_000_000


class Told:
    """Keeps what a caller is sent at the end."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def on_done(self) -> None:
        self.ends.append("done")

    def on_error(self, text: str) -> None:
        self.ends.append(f"error: {text}")


async def test_documented_defaults_are_the_real_ones(make_room: MakeRoom) -> None:
    """The words of the documentation of `Think`: ten steps with calls, a one-line prompt, reasoning sent."""
    room = make_room()
    turn = await room.say("\n".join(f'call tool add {{"a": {at}, "b": 1}}\nsay: {{result}}' for at in range(12)))
    assert turn.step_count == Think.max_steps + 1 == 11  # the last one without a call
    assert room.model.requests[0]["messages"][0]["content"] == "You are a helpful assistant."
    assert Think.send_reasoning is True


async def test_the_response_hook_runs_when_the_answer_is_stored_and_the_lane_free(
    make_room: MakeRoom,
) -> None:
    room = make_room("watcher")
    async with worker():
        await room.handle.chat("say: hi")
    assert SEEN == [("stored", ["user", "assistant"]), ("busy", False)]


class Late(ScriptedModel):
    """Is stopped at the very end of its answer, and ends all the same."""

    turn_id = ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield TextDelta(text="all of it")
        await db(cancel_turn, self.turn_id)
        yield Finish(reason=FinishReason.STOP)


async def test_a_stop_is_not_overwritten_by_a_turn_that_ends(make_room: MakeRoom) -> None:
    room = make_room()
    MODELS["current"] = model = Late()
    admission = await room.admit("hi")
    model.turn_id = admission.turn.pk
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(admission.turn.pk)) == "aborted"
    assert text_of((await room.transcript())[-1]) == "all of it"


async def test_a_replaced_input_is_validated_again(make_room: MakeRoom) -> None:
    room = make_room("gate")
    turn = await room.say('call tool add {"a": 5, "b": 0}\nsay: done')
    part = next(part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part)
    assert part["state"] == "output-error"
    assert "a" in part["errorText"]
    assert "integer" in part["errorText"]
    assert (CALLS, status_of(turn)) == ([], "completed")
    assert [outcome.success for name, outcome in SEEN if name == "after_tool_call"] == [False]


async def test_a_model_that_goes_silent_is_asked_to_go_on(make_room: MakeRoom) -> None:
    room = make_room("impatient")
    sent = Told()
    async with worker(), asyncio.timeout(30):
        result = await room.handle.chat("stream 8 words\nstall after 3 for 60 s", sent)
    assert (result.status, sent.ends) == (TurnStatus.COMPLETED, ["done"])
    assert result.message is not None
    assert len(text_of(result.message).split()) == 8


async def test_a_silent_model_is_reported_to_waiting_clients(make_room: MakeRoom) -> None:
    room = make_room("impatient")
    sent = Told()

    class Silent(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            yield TextDelta(text="word ")
            await asyncio.sleep(60)  # a model that falls silent

    MODELS["current"] = Silent()
    async with worker(), asyncio.timeout(30):
        result = await room.handle.chat("hi", sent)
    assert result.status is TurnStatus.ERROR
    assert sent.ends == [f"error: {result.error}"]
    assert text_of((await room.transcript())[-1]).startswith("word ")


async def original_of(room: Room, url: str) -> JSONObject:
    file = await db(attachments.load_for_model, url, room.key.owner_id)
    found: JSONObject = json.loads(file.data)
    return found


async def test_the_original_of_a_cut_output_is_kept_and_named(make_room: MakeRoom) -> None:
    room = make_room("huge")
    MODELS["current"] = Large()
    await room.say("hi")
    message = (await room.transcript())[-1]
    [url] = set(message["metadata"]["spilled"].values())
    original = await original_of(room, url)
    assert [part["output"] for part in original["parts"] if "toolCallId" in part] == ["y" * 2_000_000]
    row = await db(Attachment.objects.get)
    instance = await db(AgentInstance.objects.get)
    assert (row.instance_id, row.claimed_at is None) == (instance.pk, False)  # so it is never swept


async def test_the_original_of_a_cut_text_is_kept_and_is_its_owners_alone(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("say: ok\n" + BIG)
    user = (await room.transcript())[0]
    [url] = set(user["metadata"]["spilled"].values())
    assert (await original_of(room, url))["parts"] == [{"type": "text", "text": "say: ok\n" + BIG}]
    bob = await db(User.objects.create_user, "bob")
    with pytest.raises(AttachmentNotFound):
        await db(attachments.load_for_model, url, bob.pk)


async def test_what_a_person_wrote_is_refused_rather_than_cut_for_good(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FILES_QUOTA_BYTES = 1000
    room = make_room()
    with pytest.raises(QuotaExceeded):
        await room.admit(BIG)
    assert await db(Turn.objects.count) == await db(Message.objects.count) == 0


async def test_an_answer_is_stored_although_its_original_has_no_room(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FILES_QUOTA_BYTES = 1000
    room = make_room("huge")
    MODELS["current"] = Large()
    turn = await room.say("hi")
    message = (await room.transcript())[-1]
    assert status_of(turn) == "completed"
    assert message["metadata"] == {"compactedToolOutputs": ["c1"]}
