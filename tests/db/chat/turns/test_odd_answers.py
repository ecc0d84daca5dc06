"""Answers that are odd in a turn: thoughts in tags, an end in the middle, and an end without a word."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.llm.adapters.transport import close_clients
from chat.llm.registry import guarded, resolve_model
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.llm.testing import make_request
from chat.think import Think, Tool, tool
from chat.turns.background.ask_model import ask
from sessions_app.models import Session
from sessions_app.search.query import search_everything
from tests.odd_provider import Reply
from tests.odd_provider import odd_provider as odd_provider_of
from tests.providers.corpus import FOLDER
from thinkproject.kernel.aio import db
from thinkproject.kernel.retry import RetryPolicy

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


@pytest.fixture(autouse=True)
def _tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tests/unit/thinkproject/kernel/test_retry.py` tests how long it is waited, `tests/unit/chat/llm` that it is."""
    monkeypatch.setattr(RetryPolicy, "delay_seconds", lambda *_arguments, **_options: 0.0)


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
    assert (status_of(turn), turn.error_code, len(odd_provider.requests())) == ("error", "content_filtered", 1)
    assert (await odd_room.texts())[-1] == ("assistant", "First you")
    assert "content filter" in turn.error_text


async def test_thoughts_up_to_the_limit_are_paid_once(odd_room: Room, odd_provider: ScriptedServer) -> None:
    turn = await odd_room.say("reason: Hm.\nsay:\nfinish: length")
    assert (status_of(turn), turn.error_code, len(odd_provider.requests())) == ("error", "answer_empty", 1)
    assert "Allow more tokens for the output, choose less reasoning effort" in turn.error_text
    assert status_of(await odd_room.say("say: Here I am.")) == "completed"


async def test_thoughts_without_an_answer_are_tried_once_more(odd_room: Room, odd_provider: ScriptedServer) -> None:
    turn = await odd_room.say("reason: Hm.\nsay:")
    assert (status_of(turn), len(odd_provider.requests())) == ("error", 2)
    assert turn.error_code == "answer_empty"


@pytest.mark.parametrize(
    ("script", "attempts"),
    [
        ("usage: 1000 100 cached 10 reasoning 5\nsay:", 2),
        ("usage: 1000 100 cached 10 reasoning 5\nsay: First\nfinish: content_filter", 1),
        ('call tool look {"q": "a"}\nusage: 7 1\nsay:\nusage: 1000 100', 2),
    ],
)
async def test_the_use_of_an_answer_that_failed_counts(
    odd_room: Room, odd_provider: ScriptedServer, script: str, attempts: int
) -> None:
    turn = await odd_room.say(script)
    before = (7, 1) if "call" in script else (0, 0)
    assert status_of(turn) == "error"
    assert (turn.input_tokens - before[0], turn.output_tokens - before[1]) == (1000 * attempts, 100 * attempts)
    [session] = await db(lambda: list(Session.objects.all()))
    assert (session.input_tokens, session.output_tokens) == (turn.input_tokens, turn.output_tokens)
    assert turn.model_report is None


async def test_the_use_of_a_first_attempt_counts_with_the_answer_and_with_a_title(
    make_room: MakeRoom, settings: Any
) -> None:
    replies = iter([Reply(text="", usage={"prompt_tokens": 900}), Reply(text="Hello."), Reply(text=""), Reply()])
    with odd_provider_of(lambda _body: next(replies)) as running:
        settings.THINK_PROVIDERS = {"odd": {"base_url": running.base_url}}
        turn = await make_room("oddity").say("Are you there?")
        assert (turn.input_tokens, turn.output_tokens, turn.step_count) == (909, 6, 1)
        text, finish = await ask(guarded(resolve_model("odd/model")), make_request("Title?"))
        assert (text, finish and finish.usage.input_tokens) == ("hi", 18)
    await close_clients()


async def test_a_call_that_is_written_into_the_text_is_made(make_room: MakeRoom, settings: Any) -> None:
    spoken = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"q": "a"}}\n</tool_call>'
    replies = iter([Reply(text=spoken), Reply(text="It is there.")])
    with odd_provider_of(lambda _body: next(replies)) as running:
        settings.THINK_PROVIDERS = {"odd": {"base_url": running.base_url}}
        room = make_room("oddity")
        assert status_of(await room.say("Where is a?")) == "completed"
    await close_clients()
    parts = [part for part in (await room.transcript())[-1]["parts"] if part["type"] != "step-start"]
    assert [part["type"] for part in parts] == ["reasoning", "tool-look", "text"]
    assert (parts[1]["output"], parts[2]["text"]) == ("found a", "It is there.")
    [_, _, answer, result] = running.bodies[-1]["messages"]
    assert (answer["content"], answer["tool_calls"][0]["function"]["name"]) == (None, "look")
    assert result["content"] == "found a"


@pytest.mark.parametrize(
    ("reply", "words", "requests"),
    [
        (Reply(body="<!DOCTYPE html><title>Sign in</title>"), "web page. Check the base URL", 1),
        (Reply(body=[{"error": {"code": 400, "message": "API key not valid."}}]), "API key", 1),
        (Reply(status=400, body=[{"error": {"code": 400, "message": "API key not valid."}}]), "API key", 1),
        (Reply(status=403, body={"code": 30001, "message": "account balance is insufficient"}), "credit", 1),
        (
            Reply(status=400, body={"error": {"code": "tool_use_failed", "message": "x"}}),
            "call that its model wrote",
            3,
        ),
        (Reply(body='data: {"choices":[{"delta":{},"finish_reason":"abort"}]}\n\n'), "broke off", 3),
    ],
)
async def test_what_is_no_answer_is_an_error_with_what_to_do(
    make_room: MakeRoom, settings: Any, reply: Reply, words: str, requests: int
) -> None:
    with odd_provider_of(lambda _body: reply) as running:
        settings.THINK_PROVIDERS = {"odd": {"base_url": running.base_url}}
        turn = await make_room("oddity").say("Hello.")
    await close_clients()
    assert (status_of(turn), len(running.bodies)) == ("error", requests)
    assert words in turn.error_text
