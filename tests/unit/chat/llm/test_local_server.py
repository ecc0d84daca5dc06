"""The real small model behind its own server, reached through the adapter. Skipped where its wheels are missing."""

import asyncio
import importlib.util
import json
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

import pytest

from chat.core.model.language_model import (
    AssistantMessage,
    LanguageModel,
    ModelSettings,
    TextContent,
    TextDelta,
    ToolSpec,
)
from chat.errors import ContextOverflow
from chat.llm import local_server
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.local_server import LocalModelMissing, answers, weights_path
from chat.llm.testing import collect, make_request, text_of, user

SHORT = ModelSettings(max_output_tokens=24, temperature=0.0, seed=1)


@pytest.fixture
async def local_model(local_base_url: str) -> AsyncIterator[LanguageModel]:
    endpoint = Endpoint(provider="local", base_url=local_base_url, can_call_tools=False, accepts_images=False)
    yield ChatCompletionsModel(endpoint, "smollm2-135m")
    await close_clients()


async def test_it_streams_an_answer_in_pieces(local_model: LanguageModel) -> None:
    events = await collect(local_model, make_request("What is the capital of France?", settings=SHORT))
    assert "Paris" in text_of(events)
    assert sum(isinstance(event, TextDelta) for event in events) > 3


async def test_tools_of_a_request_do_not_reach_it(local_model: LanguageModel) -> None:
    tool = ToolSpec(name="weather", description="Weather.", input_schema={"type": "object"})
    assert "tools" not in local_model.describe(make_request("hi", tools=(tool,)))
    assert text_of(await collect(local_model, make_request("Say hi.", tools=(tool,), settings=SHORT)))


async def test_it_goes_on_from_a_partial_answer(local_model: LanguageModel) -> None:
    partial = AssistantMessage(content=(TextContent(text="The capital of"),))
    request = make_request("Capital of France?", partial, user("Go on where you left off."), settings=SHORT)
    assert text_of(await collect(local_model, request)).strip()


async def test_a_conversation_beyond_its_context_is_an_overflow(local_model: LanguageModel) -> None:
    with pytest.raises(ContextOverflow):
        await collect(local_model, make_request("word " * 20_000, settings=SHORT))


async def test_four_conversations_are_answered_at_once(local_model: LanguageModel) -> None:
    requests = [make_request(f"Write a line about the number {number}.", settings=SHORT) for number in range(4)]
    answers = await asyncio.gather(*(collect(local_model, request) for request in requests))
    assert all(text_of(events).strip() for events in answers)


def test_it_lists_its_alias_and_shows_no_web_page(local_base_url: str) -> None:
    assert answers(local_base_url)
    with urllib.request.urlopen(f"{local_base_url}/models") as response:
        assert json.load(response)["data"][0]["id"] == local_server.MODEL_ALIAS
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(local_base_url.removesuffix("/v1") + "/slots")
    caught.value.close()


def test_pages_of_other_sites_are_not_let_in(local_base_url: str) -> None:
    request = urllib.request.Request(f"{local_base_url}/models", headers={"Origin": "https://evil.example"})
    with urllib.request.urlopen(request) as response:
        assert response.headers.get("Access-Control-Allow-Origin", "") in ("", "null")


def test_the_probe_never_raises() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert answers(f"http://127.0.0.1:{port}/v1", seconds=0.2) is False
    assert answers(f"http://127.0.0.1:{port}/v1") is False
    assert answers("nonsense") is False


def test_missing_wheels_are_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LocalModelMissing):
        weights_path()
    assert local_server.main([]) == 3
    assert "not installed" in capsys.readouterr().err
