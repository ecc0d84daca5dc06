"""Answers that are odd in a turn: thoughts in tags, an end in the middle, and an end without a word."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.llm.adapters.transport import close_clients
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.think import Think, Tool, tool
from sessions_app.search.query import search_everything
from tests.providers.corpus import FOLDER
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of


@tool
def look(q: str) -> str:
    """Look something up."""
    return f"found {q}"


class Oddity(Think):
    """Has a model that answers oddly."""

    workspace_tools = False

    def get_model(self) -> str:
        return "odd/model"

    def get_tools(self) -> list[Tool]:
        return [look]


@pytest.fixture
async def odd_provider(settings: Any) -> AsyncIterator[ScriptedServer]:
    with ScriptedServer(ServerOptions(recordings=FOLDER)) as running:
        settings.THINK_PROVIDERS = {"odd": {"base_url": running.base_url}}
        yield running
    await close_clients()


@pytest.fixture
def odd_room(make_room: MakeRoom, odd_provider: ScriptedServer) -> Room:
    return make_room("oddity")


@pytest.mark.parametrize("name", ["vllm/thinking-in-tags", "llamacpp/lone-closing-tag-in-pieces"])
async def test_thoughts_in_tags_are_reasoning(odd_room: Room, odd_provider: ScriptedServer, name: str) -> None:
    assert status_of(await odd_room.say(f"play {name}")) == "completed"
    parts = [part for part in (await odd_room.transcript())[-1]["parts"] if part["type"] != "step-start"]
    assert [(part["type"], part["text"].strip()) for part in parts] == [("reasoning", "hm so"), ("text", "42")]
    await odd_room.say("say: Welcome.")
    assert [m["content"] for m in odd_provider.requests()[-1]["messages"] if m["role"] == "assistant"] == ["42"]
    assert not (await db(search_everything, "hm")).hits


async def test_an_error_behind_the_end_costs_no_second_request(odd_room: Room, odd_provider: ScriptedServer) -> None:
    assert status_of(await odd_room.say("play siliconflow/error-after-the-end")) == "completed"
    assert (await odd_room.texts())[-1] == ("assistant", "Grüße")
    assert len(odd_provider.requests()) == 1


async def test_an_end_without_a_word_after_a_tool_is_tried_once_more_and_then_said(
    odd_room: Room, odd_provider: ScriptedServer
) -> None:
    turn = await odd_room.say('call tool look {"q": "a"}\nplay ollama/empty-stop-after-a-tool')
    assert (status_of(turn), len(odd_provider.requests())) == ("error", 3)
    assert "choose another model" in turn.error_text
    assert status_of(await odd_room.say("say: Here I am.")) == "completed"


async def test_a_filter_that_stops_a_text_is_an_error_that_keeps_it(
    odd_room: Room, odd_provider: ScriptedServer
) -> None:
    turn = await odd_room.say("play openai/filtered")
    assert (status_of(turn), len(odd_provider.requests())) == ("error", 1)
    assert (await odd_room.texts())[-1] == ("assistant", "First you")
    assert "content filter" in turn.error_text


async def test_thoughts_without_an_answer_are_tried_once_more(odd_room: Room, odd_provider: ScriptedServer) -> None:
    turn = await odd_room.say("reason: Hm.\nsay:")
    assert (status_of(turn), len(odd_provider.requests())) == ("error", 2)
    assert turn.error_code == "answer_empty"
