"""Metadata that a class gives its answers: sent with the first and the last chunk, stored with the message."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.streams.reader import read
from chat.think import ChatOptions, MetadataContext, Think, Tool, ToolContext, tool
from fibers.context import current_fiber
from fibers.testing import die
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.jsonvalue import JSONObject, load

from .conftest import MakeRoom, Room, status_of
from .slips import NEUTRAL, sentences

ASKED: list[MetadataContext] = []


@tool
async def fall(context: ToolContext) -> str:
    """Lose the worker at the first attempt."""
    if context.attempt == 1:
        fiber = current_fiber()
        assert fiber is not None
        die(fiber)
    return "up again"


class Dated(Think):
    """Gives metadata at both ends."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [fall]

    def get_message_metadata(self, context: MetadataContext) -> JSONObject | None:
        ASKED.append(context)
        if context.moment == "start":
            return {"began": len(ASKED), "state": "writing"}
        return {"state": "done", "tokens": context.output_tokens, "finish": context.finish_reason}


class DatedByHand(Dated):
    """Writes its answer itself, with metadata of its own."""

    async def on_chat_message(self, options: ChatOptions) -> AsyncIterator[JSONObject]:
        yield {"type": "start", "messageMetadata": {"source": "hand"}}
        yield {"type": "text-start", "id": "t"}
        yield {"type": "text-delta", "id": "t", "delta": "Hello."}
        yield {"type": "text-end", "id": "t"}


class Misdated(Dated):
    """Gives what is no object."""

    def get_message_metadata(self, context: MetadataContext) -> Any:
        return "today"


class Unencodable(Dated):
    """Gives what is no JSON."""

    def get_message_metadata(self, context: MetadataContext) -> Any:
        return {"at": object()}


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    ASKED.clear()


async def chunks(turn_id: str) -> dict[str, JSONObject]:
    return {chunk["type"]: chunk for chunk in (load(record.text) for record in await read(turn_id))}


async def metadata(room: Room) -> Any:
    return (await room.transcript())[-1].get("metadata")


async def test_both_ends_carry_metadata_and_the_message_keeps_it(make_room: MakeRoom) -> None:
    room = make_room("dated")
    turn = await room.say("say: Hello there.")
    sent = await chunks(turn.pk)
    assert sent["start"]["messageMetadata"] == {"began": 1, "state": "writing"}
    end = sent["finish"]["messageMetadata"]
    assert (end["state"], end["finish"], end["tokens"] > 0) == ("done", "stop", True)
    assert await metadata(room) == {"began": 1, **end}
    start, finish = ASKED
    assert (start.message_id, start.request_id) == (turn.assistant_id, turn.request_id)
    assert (start.output_tokens, start.finish_reason, finish.steps) == (0, "", 1)


async def test_the_start_of_a_recovered_answer_is_asked_for_once(make_room: MakeRoom) -> None:
    room = make_room("dated")
    turn = await room.say("call tool fall {}\nsay: {result}.")
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 2)
    assert [context.moment for context in ASKED] == ["start", "finish"]
    assert (await metadata(room))["began"] == 1


async def test_an_answer_of_ones_own_may_carry_more(make_room: MakeRoom) -> None:
    room = make_room("dated-by-hand")
    await room.say("Hello?")
    found = await metadata(room)
    assert (found["began"], found["source"], found["state"]) == (1, "hand", "done")


@pytest.mark.parametrize("agent", ["misdated", "unencodable"])
async def test_metadata_that_is_no_json_object_ends_the_turn_with_a_reason(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture, agent: str
) -> None:
    turn = await make_room(agent).say("say: Hello.")
    assert (status_of(turn), turn.error_code) == ("error", "turn_config_invalid")
    assert turn.error_text == NEUTRAL
    assert "get_message_metadata()" in sentences(caplog)[0]


async def test_answers_of_other_classes_have_none(make_room: MakeRoom) -> None:
    room = make_room("plain")
    turn = await room.say("say: Hello.")
    assert not any("messageMetadata" in chunk for chunk in (await chunks(turn.pk)).values())
    assert await metadata(room) is None
