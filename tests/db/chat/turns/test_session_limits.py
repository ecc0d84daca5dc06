"""Prompt, configuration, limits and what a row keeps, through whole turns."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
)
from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from sessions_app.core.messages import shapes
from sessions_app.core.messages.oversized import ROW_MAX_BYTES
from sessions_app.messages.services import freeze_prompt
from sessions_app.models import Message, Session
from tests.db.chat.turns.agents.everyday import MODELS, PROMPTS, SEEN
from tests.sent_notes import without_notes
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import byte_size

from .conftest import MakeRoom, Room, status_of, text_of
from .large_results import Large


def systems(room: Room) -> list[str]:
    return [
        "".join(m["content"] for m in request["messages"] if m["role"] in {"system", "developer"})
        for request in room.model.requests
    ]


def rendered() -> list[str]:
    return [value for name, value in SEEN if name == "rendered"]


async def stored_prompt(room: Room) -> object:
    return await db(lambda: Session.objects.values_list("system_prompt", flat=True).get())


@pytest.mark.parametrize("prompt", ["Be brief.", ""])
async def test_null_is_rendered_and_stored_even_if_empty(make_room: MakeRoom, prompt: str) -> None:
    room = make_room("cached")
    PROMPTS["current"] = prompt
    await room.say("say: one")
    assert await stored_prompt(room) == prompt
    PROMPTS["current"] = "changed"
    await room.say("say: two")
    assert systems(room) == [prompt, prompt]
    assert rendered() == [prompt]


async def test_an_empty_frozen_prompt_is_used_as_it_is(make_room: MakeRoom) -> None:
    room = make_room("cached")
    PROMPTS["current"] = "never seen"
    admission = await room.admit("say: one")
    await db(freeze_prompt, admission.turn.session_id, "")
    await room.say("say: two")
    assert systems(room) == ["", ""]
    assert rendered() == []


async def test_a_refresh_renders_anew(make_room: MakeRoom) -> None:
    room = make_room("refreshing")
    for prompt in ("one", "two"):
        PROMPTS["current"] = prompt
        await room.say("say: hi")
    assert systems(room) == ["one", "two"]
    assert await stored_prompt(room) == "two"


async def test_without_a_cache_the_prompt_is_rendered_in_each_turn_and_not_stored(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("say: one")
    assert await stored_prompt(room) is None
    assert systems(room) == ["You are a helpful assistant."]


async def test_config_inside_configure_session(make_room: MakeRoom) -> None:
    room = make_room("configured")
    assert status_of(await room.say("say: one")) == "completed"
    await make_agent(room.key).configure({"colour": "red"})
    assert status_of(await room.say("say: two")) == "completed"
    assert SEEN == [("config", None), ("config", {"colour": "red"})]


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("forgetful", ["say: two", "two", "say: three", "three"]),
        ("plain", ["say: one", "one", "say: two", "two", "say: three", "three"]),
    ],
)
async def test_no_more_messages_are_kept_than_the_class_allows(
    make_room: MakeRoom, agent: str, shown: list[str]
) -> None:
    room = make_room(agent)
    for word in ("one", "two", "three"):
        await room.say(f"say: {word}")
    assert [text for _, text in await room.texts()] == shown
    assert await db(Message.objects.count) == 6
    await room.say("say: four")
    users = [without_notes(m["content"]) for m in room.model.requests[-1]["messages"] if m["role"] == "user"]
    assert users == [*(text for text in shown if text.startswith("say")), "say: four"]


async def call_of(room: Room) -> tuple[shapes.Message, shapes.Part]:
    message = (await room.transcript())[-1]
    return message, next(part for part in message["parts"] if "toolCallId" in part)


async def test_a_message_that_is_too_large_is_shortened(make_room: MakeRoom) -> None:
    room = make_room("huge")
    MODELS["current"] = Large()
    assert status_of(await room.say("hi")) == "completed"
    message, part = await call_of(room)
    assert byte_size(message) <= ROW_MAX_BYTES
    assert "truncated" in str(part["output"])
    assert message["metadata"]["compactedToolOutputs"] == ["c1"]
    assert text_of(message) == "done"


async def test_a_small_message_is_stored_as_it_is(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say('call tool add {"a": 1, "b": 2}\nsay: {result}')
    message, part = await call_of(room)
    assert part["output"] == 3
    assert "metadata" not in message


async def test_an_oversized_user_text_is_cut(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say("say: ok\n" + "x" * 2_000_000)
    assert status_of(turn) == "completed"
    user = (await room.transcript())[0]
    assert byte_size(user) <= ROW_MAX_BYTES
    assert user["metadata"]["compactedTextParts"] == [0]
    assert text_of(user).startswith("[Text truncated for storage")


class Sealed(ScriptedModel):
    """Thinks in ways that only its provider understands."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        scraps: dict[str, Any] = {"itemId": "rs_1", "reasoningEncryptedContent": "secret"}
        yield ReasoningDelta(text="hm", provider_metadata={"openai": {**scraps, "kept": 1}})
        yield TextDelta(text="one")
        yield ReasoningDelta(text="", provider_metadata={"openai": scraps})
        yield TextDelta(text="two")
        yield ReasoningDelta(text="", provider_metadata={"other": {"redacted": "data"}})
        yield TextDelta(text="three")
        yield Finish(reason=FinishReason.STOP)


async def test_what_providers_add_is_not_stored(make_room: MakeRoom) -> None:
    room = make_room()
    MODELS["current"] = Sealed()
    await room.say("hi")
    parts = (await room.transcript())[-1]["parts"]
    thoughts = [part for part in parts if part["type"] == "reasoning"]
    for part in thoughts:  # the time that it took is the product's own
        assert part["providerMetadata"].pop("think")["durationMs"] >= 0
    assert [(part["text"], part["providerMetadata"]) for part in thoughts] == [
        ("hm", {"openai": {"kept": 1}}),
        ("", {"other": {"redacted": "data"}}),
    ]
    assert [part["text"] for part in parts if part["type"] == "text"] == ["one", "two", "three"]
    assert await db(AgentInstance.objects.count) == 1
