"""What a model can do, as its server says: asked once, kept, and corrected by what happens."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from django.test import override_settings

from chat.core.model.language_model import AssistantMessage, ModelSettings, ToolCallContent, ToolMessage, ToolSpec
from chat.core.model.overflow import Limits
from chat.errors import ContextOverflow
from chat.llm.adapters.transport import close_clients
from chat.llm.registry import cuts_silently, facts_of, guarded, inquire_of, limits_of, resolve_model
from chat.llm.testing import collect, make_request, user
from tests.odd_provider import OddProvider, Reply, odd_provider, refused


def listing(**entry: Any) -> dict[str, Any]:
    return {"/v1/models": {"object": "list", "data": [{"id": "other"}, {"id": "m", "object": "model", **entry}]}}


def of(provider: OddProvider) -> Any:
    """The README's own line: an address, and the name of a model there."""
    return override_settings(OPENAI_BASE_URL=provider.base_url, OPENAI_API_KEY="k", THINK_MODEL="openai/m")


LISTINGS = [
    ({"max_model_len": 32_768}, 32_768),  # vLLM
    ({"meta": {"n_ctx": 8_192, "n_ctx_train": 131_072}}, 8_192),  # llama.cpp
    ({"context_length": 200_000, "top_provider": {"context_length": 100_000}}, 200_000),  # OpenRouter
    ({"loaded_context_length": 4_096, "max_context_length": 131_072}, 4_096),  # LM Studio
    ({"context_window": 131_072, "max_completion_tokens": 32_768}, 131_072),  # Groq
    ({"max_context_length": 65_536, "capabilities": {"function_calling": True}}, 65_536),  # Mistral
    ({"meta": {"n_ctx_train": 131_072}}, 0),
    ({"context_length": "many", "max_model_len": True}, 0),
]


@pytest.mark.parametrize(("entry", "context"), LISTINGS)
async def test_a_listing_gives_the_context_of_the_configured_model(entry: dict[str, Any], context: int) -> None:
    with odd_provider(lambda _body: Reply(), listing(**entry)) as provider, of(provider):
        model = resolve_model("default")
        assert limits_of(model) == Limits()
        await inquire_of([model])
        assert limits_of(model).context_tokens == context
        assert facts_of("openai/m").limits.context_tokens == context


async def test_it_is_asked_once_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with odd_provider(lambda _body: Reply(), listing(max_model_len=9_000)) as provider, of(provider):
        model = resolve_model("default")
        await asyncio.gather(*(inquire_of([model]) for _ in range(5)))
        await inquire_of([model, "openai/m"])
        assert provider.asked == ["GET /v1/models"]
        assert provider.bodies == []


async def test_a_server_that_says_nothing_is_left_alone_for_a_while() -> None:
    with odd_provider(lambda _body: Reply()) as provider, of(provider):
        for _ in range(3):
            await inquire_of(["openai/m"])
        assert provider.asked == ["GET /v1/models"]
        assert limits_of(resolve_model("openai/m")) == Limits()


SHOW = {
    "capabilities": ["completion", "vision"],
    "details": {"family": "llama"},
    "model_info": {"general.architecture": "llama", "llama.context_length": 131_072},
}


@pytest.mark.parametrize(
    ("shown", "running", "context"),
    [
        ({**SHOW, "parameters": 'stop "<|eot|>"\nnum_ctx                        16384'}, [], 16_384),
        (SHOW, [{"name": "m:latest", "model": "m:latest", "context_length": 4_096}], 4_096),
        (SHOW, [], 131_072),
    ],
)
async def test_ollama_is_asked_in_its_own_words(shown: Any, running: Any, context: int) -> None:
    pages = {
        "/v1/models": {"object": "list", "data": [{"id": "m:latest", "owned_by": "library"}]},
        "/api/show": lambda body: shown if body["model"] == "m" else None,
        "/api/ps": {"models": running},
    }
    with odd_provider(lambda _body: Reply(), pages) as provider, of(provider):
        model = resolve_model("openai/m")
        await inquire_of([model])
        assert limits_of(model).context_tokens == context
        facts = facts_of("openai/m")
        assert (facts.calls_tools, facts.inputs) == (False, ("image",))


async def test_tools_media_and_price_are_read_as_well() -> None:
    entry = {
        "context_length": 128_000,
        "top_provider": {"max_completion_tokens": 16_384},
        "architecture": {"input_modalities": ["text", "file"]},
        "supported_parameters": ["temperature", "tools"],
        "pricing": {"prompt": "0.0000025", "completion": "0.00001", "input_cache_read": "0.00000125"},
    }
    with odd_provider(lambda _body: Reply(), listing(**entry)) as provider, of(provider):
        await inquire_of(["openai/m"])
        facts = facts_of("openai/m")
        assert facts.price is not None
        assert (facts.price.input, facts.price.output, facts.price.cache_read) == tuple(
            map(Decimal, ("2.5", "10", "1.25"))
        )
        assert (facts.calls_tools, facts.inputs) == (True, ("document",))
        assert facts.limits == Limits(context_tokens=128_000, output_tokens=16_384)
        assert not resolve_model("openai/m").accepts_images


@pytest.mark.parametrize(
    "body", [[], {}, {"data": None}, {"data": 5}, {"data": [5, {"id": 7}]}, "text", {"data": [{}]}]
)
async def test_odd_listings_say_nothing(body: Any) -> None:
    with odd_provider(lambda _body: Reply(), {"/v1/models": body}) as provider, of(provider):
        await inquire_of(["openai/m"])
        assert limits_of(resolve_model("openai/m")) == Limits()


async def test_settings_go_before_what_a_server_says() -> None:
    limits = {"openai/m": {"context": 5_000, "output": 500}}
    with odd_provider(lambda _body: Reply(), listing(max_model_len=9_000)) as provider, of(provider):
        await inquire_of(["openai/m"])
        with override_settings(THINK_MODEL_LIMITS=limits):
            assert limits_of(resolve_model("openai/m")).context_tokens == 5_000


async def test_a_refusal_corrects_what_was_said() -> None:
    words = "This model's maximum context length is 4096 tokens. However, your messages resulted in 9001 tokens."
    with odd_provider(lambda _body: refused(words), listing(context_length=131_072)) as provider, of(provider):
        model = resolve_model("openai/m")
        await inquire_of([model])
        with pytest.raises(ContextOverflow):
            await collect(model, make_request("hello"))
        await inquire_of([model])
        assert limits_of(model).context_tokens == 4_096
        await close_clients()


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        ("word " * 1_200, {"prompt_tokens": 1_200}),  # the tools are left out
        ((" " * 60 + "pass\n") * 1_500, {"prompt_tokens": 3_000}),  # code whose indentation is a token each
        ("word " * 9_000, {"prompt_tokens": 2_050, "prompt_tokens_details": {"cached_tokens": 2_000}}),
        ("word " * 9_000, {"input_tokens": 1_500, "cache_read_input_tokens": 9_000}),  # the cached ones beside it
    ],
)
async def test_a_count_that_is_low_for_another_reason_is_no_window(text: str, usage: dict[str, object]) -> None:
    """A window that is believed in wrongly would have every later turn of the installation refused."""
    with odd_provider(lambda _body: Reply(usage=usage)) as provider, of(provider):
        model = resolve_model("openai/m")
        tool = ToolSpec(name="look", description="Looks. " * 2_000, input_schema={"type": "object"})
        events = await collect(model, make_request(text, tools=(tool,)))
        assert limits_of(model).context_tokens == 0
        assert getattr(events[-1], "warnings", ()) == ()
        await close_clients()


async def test_a_count_beyond_a_known_window_corrects_it() -> None:
    """A server was started anew with a larger context: the lesson ends with the first answer that shows it."""
    counts = iter([2_050, 2_900, 2_000])
    with odd_provider(lambda _body: Reply(usage={"prompt_tokens": next(counts)})) as provider, of(provider):
        model = resolve_model("openai/m")
        known = []
        for words in (6_000, 2_900, 2_000):
            await collect(model, make_request("word " * words))
            known.append(limits_of(model).context_tokens)
        assert known == [2_050, 0, 0]
        await close_clients()


@pytest.mark.parametrize(("tokens", "context"), [(2_050, 2_050), (7_400, 0), (4_000, 0), (9, 0)])
async def test_a_server_that_cuts_silently_is_noticed_by_its_count(tokens: int, context: int) -> None:
    """Real world 9: 30,000 characters, of which 2,050 tokens were read."""
    with odd_provider(lambda _body: Reply(usage={"prompt_tokens": tokens})) as provider, of(provider):
        model = resolve_model("openai/m")
        events = await collect(model, make_request("word " * 6_000))
        assert limits_of(model).context_tokens == context
        warnings = getattr(events[-1], "warnings", ())
        assert any("OLLAMA_CONTEXT_LENGTH" in warning for warning in warnings) is bool(context)
        await close_clients()


async def test_a_lesson_of_one_address_is_not_applied_at_another() -> None:
    """The same name of a model at two addresses: one refuses schemas and cuts, the other is asked as if it were new."""

    def strict(body: Any) -> Reply:
        return refused("response_format is not supported") if "response_format" in body else cutting(body)

    def cutting(_body: Any) -> Reply:
        return Reply(usage={"prompt_tokens": 2_050})

    schema = ModelSettings(response_schema={"type": "object", "properties": {"text": {"type": "string"}}})
    sent: list[list[bool]] = []
    with odd_provider(strict) as first, odd_provider(lambda _body: Reply()) as second:
        for provider in (first, second, first):
            with of(provider):
                model = guarded(resolve_model("openai/m"))
                before = len(provider.bodies)
                await collect(model, make_request("hello", settings=schema))
                sent.append(["response_format" in body for body in provider.bodies[before:]])
        assert sent == [[True, False], [True], [False]]
        with of(first):
            await collect(resolve_model("openai/m"), make_request("word " * 6_000))
            assert limits_of(resolve_model("openai/m")).context_tokens == 2_050
        with of(second):
            assert limits_of(resolve_model("openai/m")).context_tokens == 0
            assert not cuts_silently(resolve_model("openai/m"))
        await close_clients()


async def test_a_provider_that_does_not_count_the_arguments_of_calls_has_no_window_for_it() -> None:
    """It would be believed in all conversations with that model: of this one, its count is of all but one argument."""
    written = ToolCallContent(call_id="c1", tool_name="write", input={"path": "a.txt", "content": "word " * 9_000})
    history = (
        user("Write it."),
        AssistantMessage(content=(written,)),
        ToolMessage(call_id="c1", tool_name="write", output="Written."),
    )
    with odd_provider(lambda _body: Reply(usage={"prompt_tokens": 1_400})) as provider, of(provider):
        model = resolve_model("openai/m")
        events = await collect(model, make_request(*history, "word " * 1_200))
        assert limits_of(model).context_tokens == 0
        assert getattr(events[-1], "warnings", ()) == ()
        await close_clients()
