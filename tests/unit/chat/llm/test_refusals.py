"""Refused parameters, tools and pictures: left out once, for this and all later calls of the model."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from chat.core.model.language_model import (
    FileContent,
    Finish,
    ModelRequest,
    ModelSettings,
    TextContent,
    ToolSpec,
    UserMessage,
)
from chat.errors import ContextOverflow, ModelError, ModelRejected
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import model_memory
from chat.llm.testing import collect, collect_until_error, make_request, text_of
from tests.odd_provider import JSON, OddProvider, Reply, inside, odd_provider, refused

Serve = Callable[[Callable[[JSON], Reply]], OddProvider]
Way = Callable[[Reply], Reply]


def by_status(refusal: Reply) -> Reply:
    return refusal


@pytest.fixture(params=[by_status, inside])
def refuse(request: pytest.FixtureRequest) -> Way:
    """How a server refuses: by the status, or within a stream of status 200."""
    chosen: Way = request.param
    return chosen


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    stack: list[Any] = []

    def start(answer: Callable[[JSON], Reply]) -> OddProvider:
        stack.append(odd_provider(answer))
        provider: OddProvider = stack[-1].__enter__()
        return provider

    yield start
    await close_clients()
    for running in stack:
        running.__exit__(None, None, None)


def model_of(provider: OddProvider, **more: Any) -> ChatCompletionsModel:
    return ChatCompletionsModel(
        Endpoint(provider=more.pop("provider", "acme"), base_url=provider.base_url, **more), "m"
    )


ALL = ModelSettings(
    max_output_tokens=50,
    temperature=0.2,
    top_p=0.5,
    top_k=4,
    presence_penalty=0.1,
    frequency_penalty=0.1,
    stop_sequences=("END",),
    seed=7,
    reasoning_effort="low",
    parallel_tool_calls=False,
)
READ = ToolSpec(name="tool_read", description="Read.", input_schema={"type": "object", "properties": {}})
BAD = ToolSpec(name="tool_bad", description="Bad.", input_schema={"type": "object", "properties": {"$.x": {}}})

REFUSALS = [
    # OpenAI, Azure: https://github.com/ITSpecialist111/ai_automation_suggester/issues/38
    (
        "max_tokens",
        refused(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
    ),
    ("max_tokens", refused("Unrecognized request argument supplied: max_tokens")),
    # https://github.com/decolua/9router/issues/560
    (
        "temperature",
        refused(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
            "supported.",
            param="temperature",
            code="unsupported_value",
        ),
    ),
    ("temperature", refused("`temperature` is deprecated for this model.")),
    ("parallel_tool_calls", refused("Unsupported parameter: 'parallel_tool_calls' is not supported with this model.")),
    ("parallel_tool_calls", refused("property 'parallel_tool_calls' is unsupported", code="")),
    ("stream_options", refused('Invalid JSON payload received. Unknown name "stream_options": Cannot find field.')),
    ("reasoning_effort", refused("Argument not supported on this model: reasoningEffort")),
    ("reasoning_effort", refused("This model does not support reasoning.")),
    ("presence_penalty", refused("Model grok-4 does not support parameter presencePenalty.")),
    ("stop", refused("Argument not supported on this model: stop")),
    ("seed", refused("unknown field: parameter 'seed' is not a valid field")),
    (
        "top_k",
        refused("Malformed input request: #: extraneous key [top_k] is not permitted, please reformat your input"),
    ),
    (
        "stream_options",
        Reply(
            status=422,
            body={
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "stream_options"],
                        "msg": "Extra inputs are not permitted",
                        "input": {"include_usage": True, "temperature": 1, "seed": "unsupported"},
                    }
                ]
            },
        ),
    ),
    (
        "seed",
        Reply(
            status=400,
            body={
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not "
                "permitted', 'input': {'temperature': 1}}]",
            },
        ),
    ),
    ("top_p", refused("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")),
]


@pytest.mark.parametrize(("name", "refusal"), REFUSALS)
async def test_a_refused_parameter_is_left_out_for_all(serve: Serve, refuse: Way, name: str, refusal: Reply) -> None:
    both = {"temperature", "top_p"} if "both" in str(refusal.body) else {name}
    provider = serve(lambda body: refuse(refusal) if both <= body.keys() else Reply())
    first, second = model_of(provider), model_of(provider)
    request = make_request("hello", tools=(READ,), settings=ALL)
    [finish] = [event for event in await collect(first, request) if isinstance(event, Finish)]
    assert text_of(await collect(second, request)) == "hi"
    assert [name in body for body in provider.bodies] == [True, False, False]
    assert set(provider.bodies[0]) - set(provider.bodies[1]) == {name}
    assert second.describe(request) == provider.bodies[2]
    if name not in ("stream_options", "max_tokens"):
        assert finish.warnings == (f"acme/m does not support {name}; it was not sent.",)


async def test_a_limit_of_the_answer_takes_its_other_name(serve: Serve) -> None:
    provider = serve(lambda body: refused("Unknown field: max_tokens") if "max_tokens" in body else Reply())
    await collect(model_of(provider), make_request("x", settings=ModelSettings(max_output_tokens=50)))
    await collect(model_of(provider), make_request("y", settings=ModelSettings(max_output_tokens=60)))
    sent = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in provider.bodies]
    assert sent == [(50, None), (None, 50), (None, 60)]


async def test_a_limit_that_has_no_name_is_left_out(serve: Serve) -> None:
    def answer(body: JSON) -> Reply:
        name = next((name for name in ("max_tokens", "max_completion_tokens") if name in body), None)
        return refused(f"Unknown field: {name}") if name else Reply()

    provider = serve(answer)
    for _ in range(2):
        await collect(model_of(provider), make_request("x", settings=ModelSettings(max_output_tokens=50)))
    assert len(provider.bodies) == 4


async def test_several_parameters_are_refused_one_after_the_other(serve: Serve) -> None:
    names = ("max_tokens", "temperature", "stream_options", "parallel_tool_calls", "reasoning_effort")

    def answer(body: JSON) -> Reply:
        name = next((name for name in names if name in body), None)
        return refused(f"Unsupported parameter: '{name}'", param=name) if name else Reply()

    provider = serve(answer)
    request = make_request("x", tools=(READ,), settings=ALL)
    for _ in range(2):
        assert text_of(await collect(model_of(provider), request)) == "hi"
    assert len(provider.bodies) == len(names) + 2


async def test_another_model_and_another_address_are_not_concerned(serve: Serve) -> None:
    answer: Callable[[JSON], Reply] = lambda body: (  # noqa: E731 - two servers have it
        refused("Unsupported parameter: 'temperature'", param="temperature") if "temperature" in body else Reply()
    )
    request = make_request("x", settings=ModelSettings(temperature=0.2))
    for provider in (serve(answer), serve(answer)):
        await collect(model_of(provider), request)
        await collect(ChatCompletionsModel(Endpoint(provider="acme", base_url=provider.base_url), "n"), request)
        assert ["temperature" in body for body in provider.bodies] == [True, False, True, False]


async def test_a_refusal_that_only_quotes_the_request_teaches_nothing(serve: Serve, refuse: Way) -> None:
    provider = serve(lambda body: refuse(refused(f"messages.0: field required, got unexpected {body}")))
    request = make_request("x", settings=ModelSettings(temperature=0.2))
    with pytest.raises(ModelRejected):
        await collect(model_of(provider), request)
    assert model_memory.of(provider.base_url, "m").left_out == ()
    assert len(provider.bodies) <= 3


async def test_an_unknown_effort_is_a_failure_that_says_what_to_do(serve: Serve) -> None:
    provider = serve(
        lambda _body: refused(
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: "
            "'low', 'medium', and 'high'.",
            param="reasoning_effort",
            code="unsupported_value",
        )
    )
    with pytest.raises(ModelRejected, match="another effort"):
        await collect(model_of(provider), make_request("x", settings=ModelSettings(reasoning_effort="minimal")))
    assert len(provider.bodies) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        # https://github.com/Azure/azure-mcp/issues/197
        refused(
            "Invalid schema for function 'tool_bad': In context=(), object schema missing properties.",
            param="tools[1].function.parameters",
            code="invalid_function_parameters",
        ),
        refused("tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12."),
        refused("invalid JSON schema for tool tool_bad, tools[1].function.parameters: unknown keyword"),
        # https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/79
        refused("* tools[0].function_declarations[1].name: [FIELD_INVALID] Invalid function name."),
        # https://github.com/anomalyco/opencode/issues/2687
        refused("Invalid value at 'tools.function_declarations[1].parameters.properties[1].value.enum[0]'"),
        # https://github.com/unclecode/crawl4ai/issues/1311
        refused("Unable to submit request because `tool_bad` functionDeclaration `parameters.f` schema has no type."),
        Reply(status=422, body={"detail": [{"loc": ["body", "tools", 1, "function", "parameters"], "msg": "bad"}]}),
        refused(
            "Invalid 'tools[1].function.description': string too long. Expected a string with maximum length 1024."
        ),
    ],
)
async def test_a_refused_tool_is_left_out_and_remembered(serve: Serve, refuse: Way, refusal: Reply) -> None:
    names: Callable[[JSON], list[str]] = lambda body: [  # noqa: E731 - of a body
        tool["function"]["name"] for tool in body.get("tools", ())
    ]
    provider = serve(lambda body: refuse(refusal) if "tool_bad" in names(body) else Reply())
    request = make_request("hello", tools=(READ, BAD))
    for _ in range(2):
        [*_others, finish] = await collect(model_of(provider), request)
        assert isinstance(finish, Finish)
        assert finish.warnings == ("acme/m does not take the tool tool_bad; it was not sent.",)
    assert [names(body) for body in provider.bodies] == [["tool_read", "tool_bad"], ["tool_read"], ["tool_read"]]
    mended = replace(BAD, input_schema={"type": "object", "properties": {"x": {}}})
    await collect(model_of(provider), make_request("hello", tools=(READ, mended)))
    assert names(provider.bodies[3]) == ["tool_read", "tool_bad"]


async def test_the_last_tool_takes_the_options_of_tools_along(serve: Serve) -> None:
    provider = serve(lambda body: refused("Invalid schema for function 'tool_bad'") if "tools" in body else Reply())
    request = make_request("hello", tools=(BAD,), settings=ModelSettings(parallel_tool_calls=False))
    assert text_of(await collect(model_of(provider), request)) == "hi"
    assert "parallel_tool_calls" not in provider.bodies[1]


async def test_a_tool_that_has_to_be_called_is_not_left_out(serve: Serve) -> None:
    provider = serve(lambda _body: refused("Invalid schema for function 'tool_bad'"))
    with pytest.raises(ModelRejected, match="tool_bad"):
        await collect(model_of(provider), replace(make_request("x", tools=(READ, BAD)), tool_choice="tool_bad"))
    assert len(provider.bodies) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        refused("registry.ollama.ai/library/gemma:2b does not support tools"),
        refused("No endpoints found that support tool use. Try disabling tools.", status=404),
        refused('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        refused("`tool calling` is not supported with this model"),
    ],
)
async def test_a_model_without_tools_is_named_with_what_to_do(serve: Serve, refuse: Way, refusal: Reply) -> None:
    provider = serve(lambda body: refuse(refusal) if "tools" in body else Reply())
    with pytest.raises(ModelRejected, match=r"no tools.*another model"):
        await collect(model_of(provider), make_request("x", tools=(READ,)))
    assert text_of(await collect(model_of(provider), make_request("x"))) == "hi"


def with_picture() -> ModelRequest:
    picture = FileContent(media_type="image/png", data=b"\x89PNG", filename="a.png")
    return replace(make_request(), messages=(UserMessage(content=(TextContent(text="What is it?"), picture)),))


@pytest.mark.parametrize(
    "refusal",
    [
        refused(
            "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, "
            "expected `text` at line 1 column 99"
        ),
        refused(
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", status=500
        ),
        refused("No endpoints found that support image input", status=404),
        refused("This model does not support image inputs."),
    ],
)
async def test_pictures_that_a_model_cannot_see_are_named_instead(serve: Serve, refuse: Way, refusal: Reply) -> None:
    provider = serve(lambda body: refuse(refusal) if "image_url" in str(body["messages"]) else Reply())
    for _ in range(2):
        assert text_of(await collect(model_of(provider), with_picture())) == "hi"
    assert len(provider.bodies) == 3
    assert "a.png" in provider.bodies[1]["messages"][1]["content"]
    assert not model_of(provider).accepts_images


@pytest.mark.parametrize(
    "words",
    [
        "System role not supported",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    ],
)
async def test_a_model_without_a_system_role_reads_it_with_the_question(serve: Serve, refuse: Way, words: str) -> None:
    provider = serve(lambda body: refuse(refused(words)) if body["messages"][0]["role"] == "system" else Reply())
    for _ in range(2):
        await collect(model_of(provider), make_request("hello", system="Be brief."))
    assert [body["messages"] for body in provider.bodies[1:]] == [
        [{"role": "user", "content": "Be brief.\n\nhello"}]
    ] * 2


async def test_an_answer_that_would_be_too_long_is_not_limited_for_that_request(serve: Serve) -> None:
    words = (
        "This model's maximum context length is 4096 tokens. However, you requested 4196 tokens (100 in the messages, "
        "4096 in the completion). Please reduce the length of the messages or completion."
    )
    provider = serve(lambda body: refused(words) if body.get("max_tokens", 0) > 4000 else Reply())
    assert text_of(await collect(model_of(provider), make_request("x", settings=ModelSettings(max_output_tokens=4096))))
    await collect(model_of(provider), make_request("x", settings=ModelSettings(max_output_tokens=10)))
    assert [body.get("max_tokens") for body in provider.bodies] == [4096, None, 10]


async def test_an_overflow_teaches_the_limit_that_it_names(serve: Serve, refuse: Way) -> None:
    provider = serve(lambda _body: refuse(refused("prompt is too long: 213462 tokens > 200000 maximum")))
    with pytest.raises(ContextOverflow):
        await collect(model_of(provider), make_request("x"))
    assert model_memory.of(provider.base_url, "m").context_tokens == 200_000
    assert len(provider.bodies) == 1


async def test_a_refusal_after_the_first_word_is_a_failure(serve: Serve) -> None:
    error = inside(refused("Unsupported parameter: 'temperature'", param="temperature")).body
    word = 'data: {"id":"r1","choices":[{"index":0,"delta":{"content":"Well"},"finish_reason":null}]}\n\n'
    provider = serve(lambda body: Reply(body=word + error) if "temperature" in body else Reply())
    events, failed = await collect_until_error(
        model_of(provider), make_request("x", settings=ModelSettings(temperature=0.2))
    )
    assert (text_of(events), type(failed), len(provider.bodies)) == ("Well", ModelRejected, 1)
    assert model_memory.of(provider.base_url, "m").left_out == ()


async def test_the_other_wire_learns_as_well(serve: Serve) -> None:
    provider = serve(
        lambda body: (
            refused("Unsupported parameter: 'temperature' is not supported with this model.", param="temperature")
            if "temperature" in body
            else refused("Invalid schema for function 'tool_bad'", param="tools[1].parameters")
            if len(body.get("tools", ())) > 1
            else refused("no more", status=418)
        )
    )
    model = ResponsesModel(Endpoint(provider="acme", base_url=provider.base_url), "gpt-4.1")
    with pytest.raises(ModelError):
        await collect(model, make_request("x", tools=(READ, BAD), settings=ModelSettings(temperature=0.1)))
    assert [("temperature" in body, len(body["tools"])) for body in provider.bodies] == [
        (True, 2),
        (False, 2),
        (False, 1),
    ]
