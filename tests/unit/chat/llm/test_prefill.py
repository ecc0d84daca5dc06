"""Providers that go on within a text get the text that was cut as the end of the request; others are asked to go on."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace

import pytest

from chat.core.context.prompt import GO_ON_TEXT, to_model_messages
from chat.core.model.language_model import (
    AssistantMessage,
    LanguageModel,
    ModelEvent,
    ModelRequest,
    ModelSettings,
    Prefilled,
    TextContent,
    TextDelta,
)
from chat.errors import NetworkLost
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.prefill import WAYS, way_of
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import NOTHING
from chat.llm.scripted import ScriptedServer
from chat.llm.server_facts import inquire, read_entry
from chat.llm.testing import collect, make_request, text_of
from sessions_app.core.messages.shapes import Message
from tests.odd_provider import JSON, OddProvider, Reply, odd_provider, refused
from tests.unit.chat.core.loop_world import World, texts
from thinkproject.kernel.jsonvalue import JSONObject

BASE, WORD = "40\n41\n", "4"
CUT = replace(
    make_request("count", AssistantMessage(content=(TextContent(text=BASE),)), GO_ON_TEXT),
    continues=True,
    cut_word=WORD,
)


def serving(
    answer: Callable[[JSON], Reply] = lambda _body: Reply(text="2\n43"), pages: JSON | None = None
) -> AbstractContextManager[OddProvider]:
    return odd_provider(answer, pages)


@pytest.fixture(autouse=True)
async def _closed() -> AsyncGenerator[None, None]:
    yield
    await close_clients()


def model_at(provider: OddProvider, name: str) -> ChatCompletionsModel:
    return ChatCompletionsModel(Endpoint(provider=name, base_url=provider.base_url), "m")


@pytest.mark.parametrize(
    ("address", "model", "message", "body"),
    [
        ("https://api.mistral.ai/v1", "mistral-large-latest", {"prefix": True}, {}),
        ("https://api.deepseek.com/beta", "deepseek-chat", {"prefix": True}, {}),
        ("https://api.moonshot.ai/v1", "kimi-k2.5", {"partial": True}, {}),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen-max", {"partial": True}, {}),
        ("https://api.anthropic.com/v1", "claude-sonnet-4-20250514", {}, {}),
        ("https://api.groq.com/openai/v1", "llama-3.3-70b-versatile", {}, {}),
    ],
)
def test_each_provider_is_told_as_its_page_says(address: str, model: str, message: JSON, body: JSON) -> None:
    made = ChatCompletionsModel(Endpoint(provider="p", base_url=address), model).describe(CUT)
    assert made["messages"][-1] == {"role": "assistant", "content": BASE + WORD, **message}
    assert body.items() <= made.items()


@pytest.mark.parametrize(
    ("address", "model"),
    [
        ("https://api.openai.com/v1", "gpt-5"),
        ("https://api.deepseek.com", "deepseek-chat"),
        ("https://openrouter.ai/api/v1", "openai/gpt-5"),
        ("https://api.anthropic.com/v1", "claude-opus-4-6"),
        ("https://api.mistral.ai.evil.example/v1", "m"),
        ("http://127.0.0.1:1/v1", "m"),
    ],
)
def test_all_others_are_told_to_go_on(address: str, model: str) -> None:
    made = ChatCompletionsModel(Endpoint(provider="p", base_url=address), model).describe(CUT)
    assert [message["content"] for message in made["messages"][-2:]] == [BASE, GO_ON_TEXT]


def test_each_way_names_its_page() -> None:
    assert all(way.source.startswith("https://") and (way.place or way.server) for way in WAYS)


@pytest.mark.parametrize(
    ("server", "fields"),
    [("vllm", {"continue_final_message": True, "add_generation_prompt": False}), ("llamacpp", {})],
)
async def test_a_server_that_names_itself_is_known(server: str, fields: JSON) -> None:
    entry = {"id": "m", "owned_by": server}
    assert read_entry(entry).server == server
    assert read_entry({"id": "m", "owned_by": "someone"}).server == ""
    with serving(pages={"/v1/models": {"object": "list", "data": [entry]}}) as provider:
        endpoint = Endpoint(provider="openai", base_url=provider.base_url)
        assert way_of(endpoint, "m", NOTHING) is None
        await inquire(endpoint, "m")
        made = ChatCompletionsModel(endpoint, "m").describe(CUT)
        assert made["messages"][-1]["content"] == BASE + WORD
        assert fields.items() <= made.items()


async def test_what_follows_is_announced_as_the_exact_rest() -> None:
    with serving() as provider:
        events = await collect(model_at(provider, "vllm"), CUT)
        assert [type(event) for event in events[:2]] == [Prefilled, TextDelta]
        assert text_of(events) == "2\n43"
        assert Prefilled not in map(type, await collect(model_at(provider, "acme"), CUT))


@pytest.mark.parametrize(
    "words",
    [
        # https://github.com/ggml-org/llama.cpp/issues/21889
        "Assistant response prefill is incompatible with enable_thinking.",
        "Prefilling assistant messages is not supported for this model.",  # Anthropic, from 4.6 on
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "Extra inputs are not permitted: messages.2.prefix",
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",  # Mistral
        "Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
    ],
)
async def test_a_refusal_is_learned_from_once(words: str) -> None:
    def answer(body: JSON) -> Reply:
        return refused(words) if body["messages"][-1]["role"] == "assistant" else Reply(text="42")

    with serving(answer) as provider:
        model = model_at(provider, "vllm")
        for _ in range(2):
            events = await collect(model, CUT)
            assert (text_of(events), Prefilled in map(type, events)) == ("42", False)
        assert [body["messages"][-1]["role"] for body in provider.bodies] == ["assistant", "user", "user"]
        assert "continue_final_message" not in provider.bodies[1]


@pytest.mark.parametrize(
    "request_made",
    [
        replace(CUT, cut_word=None),
        replace(CUT, settings=ModelSettings(response_schema={"type": "object"})),
        replace(CUT, messages=CUT.messages[:1]),
    ],
)
def test_where_nothing_was_cut_nothing_is_prefilled(request_made: ModelRequest) -> None:
    body = ChatCompletionsModel(Endpoint(provider="vllm", base_url="http://127.0.0.1:1/v1"), "m").describe(request_made)
    assert body["messages"][-1]["role"] == "user"
    assert "continue_final_message" not in body


class Breaking:
    """A model whose connection breaks after so many characters of text, in each of its first calls."""

    accepts_images = accepts_documents = False

    def __init__(self, model: LanguageModel, *breaks: int) -> None:
        self.name = model.name
        self._model = model
        self._breaks = list(breaks)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        left = self._breaks.pop(0) if self._breaks else None
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta) and left is not None:
                    text = event.text[:left]
                    left -= len(text)
                    if text:
                        yield TextDelta(text=text)
                    if not left:
                        raise NetworkLost("It broke.")
                    continue
                yield event

    def describe(self, request: ModelRequest) -> JSONObject:
        return self._model.describe(request)


LIST = "".join(f"{number}\n" for number in range(35, 50)) + "Done, all of it."


@pytest.mark.parametrize("provider", ["acme", "vllm", "mistral"])
@pytest.mark.parametrize("cut", range(1, len(LIST) - 1, 4))
async def test_a_list_that_breaks_anywhere_is_the_list(server: ScriptedServer, provider: str, cut: int) -> None:
    model = ChatCompletionsModel(Endpoint(provider=provider, base_url=server.base_url), "scripted")
    world = World(Breaking(model, cut, 3))  # type: ignore[arg-type]  # it is a model
    script = "say: " + LIST.replace("\n", "\\n")
    asked: Message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": script}]}
    world.prompt = lambda message: to_model_messages([asked, message])
    assert texts(await world.run()) == [LIST]
