"""Settings, tool choice and schemas as they reach a provider over each wire, read from its own log."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    LanguageModel,
    ModelEvent,
    ModelRequest,
    ModelSettings,
    TextDelta,
    ToolCallEnd,
    ToolSpec,
)
from chat.errors import ModelRejected, RateLimited
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.adapters.transport import close_clients
from chat.llm.answer_tool import NAME
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import model_memory
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.llm.testing import collect, make_request, text_of
from chat.llm.wrappers import POLICY, Preset, Retrying, SchemaByTool
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.retry import RetryPolicy

SCHEMA = {"type": "object", "properties": {"severity": {"enum": ["low", "high"]}}, "required": ["severity"]}
READ = ToolSpec(
    name="read",
    description="Read.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
LIST = ToolSpec(name="list", description="List.", input_schema={"type": "object"})


def bodies(server: ScriptedServer) -> list[JSONObject]:
    return [entry["body"] for entry in server.log() if entry["kind"] == "request"]


def calls(events: list[ModelEvent]) -> list[tuple[str, str]]:
    return [(event.tool_name, event.arguments) for event in events if isinstance(event, ToolCallEnd)]


def finish(events: list[ModelEvent]) -> Finish:
    [found] = [event for event in events if isinstance(event, Finish)]
    return found


def ask(text: str, *, choice: str = "auto", tools: tuple[ToolSpec, ...] = (), **settings: Any) -> ModelRequest:
    request = make_request(text, tools=tools, settings=ModelSettings(**settings))
    return ModelRequest(
        system=request.system, messages=request.messages, tools=tools, tool_choice=choice, settings=request.settings
    )


async def test_sampling_reaches_chat_completions(server: ScriptedServer, chat_model: LanguageModel) -> None:
    settings: JSONObject = {"top_k": 40, "presence_penalty": 0.1, "frequency_penalty": 0.2, "top_p": 0.5, "seed": 3}
    events = await collect(chat_model, ask("say: hi", **settings))
    [body] = bodies(server)
    assert {name: body[name] for name in settings} == settings
    assert finish(events).warnings == ()


async def test_an_effort_reaches_either_wire(server: ScriptedServer, endpoint_of: Callable[..., Endpoint]) -> None:
    request = ask("say: hi", reasoning_effort="high", top_p=0.5, max_output_tokens=40)
    await collect(ChatCompletionsModel(endpoint_of(server), "gpt-5"), request)
    await collect(ResponsesModel(endpoint_of(server), "gpt-5"), request)
    chat, responses = bodies(server)
    assert (chat["reasoning_effort"], chat["top_p"], chat["max_tokens"]) == ("high", 0.5, 40)
    assert responses["reasoning"] == {"summary": "auto", "effort": "high"}
    assert (responses["top_p"], responses["max_output_tokens"]) == (0.5, 40)


async def test_settings_of_a_preset_are_below_those_of_the_request(
    server: ScriptedServer, chat_model: LanguageModel
) -> None:
    preset = Preset(chat_model, ModelSettings(temperature=0.2, top_p=0.5, stop_sequences=("END",)))
    request = ask("say: hi", temperature=1.0)
    await collect(preset, request)
    [body] = bodies(server)
    assert (body["temperature"], body["top_p"], body["stop"]) == (1.0, 0.5, ["END"])
    assert preset.describe(request) == body
    assert preset.name == chat_model.name


async def test_unsupported_settings_of_responses_get_a_warning(
    server: ScriptedServer, responses_model: LanguageModel
) -> None:
    events = await collect(responses_model, ask("say: hi", top_k=40, seed=3, temperature=0.1, stop_sequences=("END",)))
    [body] = bodies(server)
    assert body["temperature"] == 0.1
    assert not {"top_k", "seed", "stop"} & set(body)
    assert [warning.split(" does not support ")[1] for warning in finish(events).warnings] == [
        "top_k; it was not sent.",
        "stop_sequences; it was not sent.",
        "seed; it was not sent.",
    ]


async def test_a_provider_without_tools_is_warned_of(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    model = ChatCompletionsModel(endpoint_of(server, can_call_tools=False), "scripted")
    events = await collect(model, ask("say: hi", tools=(READ,)))
    assert "tools" not in bodies(server)[0]
    assert finish(events).warnings == ("acme/scripted cannot call tools; none were sent.",)


async def test_options_reach_their_provider_alone(server: ScriptedServer, http_model: LanguageModel) -> None:
    options = {"acme": {"service_tier": "flex"}, "other": {"service_tier": "gold"}}
    await collect(http_model, ask("say: hi", provider_options=options, extra={"user": "u1"}))
    [body] = bodies(server)
    assert (body["service_tier"], body["user"]) == ("flex", "u1")
    assert "other" not in json.dumps(body)


@pytest.mark.parametrize(
    ("choice", "script", "made"),
    [
        ("auto", 'call tool read {"path": "a"}', [("read", '{"path": "a"}')]),
        ("none", 'call tool read {"path": "a"}\nsay: never', []),
        ("required", "say: no", [("list", "{}")]),
        ("required", 'call tool read {"path": "a"}', [("read", '{"path": "a"}')]),
        ("read", "say: no", [("read", '{"path":"text"}')]),
        ("read", 'say: {"path": "b"}', [("read", '{"path": "b"}')]),
    ],
)
async def test_a_tool_choice_is_sent_and_honoured(
    http_model: LanguageModel, server: ScriptedServer, choice: str, script: str, made: list[tuple[str, str]]
) -> None:
    events = await collect(http_model, ask(script, choice=choice, tools=(READ, LIST)))
    assert calls(events) == made
    sent = bodies(server)[0].get("tool_choice", "auto")
    name = (sent.get("function") or sent)["name"] if isinstance(sent, dict) else sent
    assert name == choice


async def test_the_choice_of_a_tool_that_is_not_sent_is_refused(http_model: LanguageModel) -> None:
    with pytest.raises(ModelRejected):
        await collect(http_model, ask("say: hi", choice="other", tools=(READ,)))


async def test_a_schema_is_sent_and_honoured(http_model: LanguageModel, server: ScriptedServer) -> None:
    events = await collect(http_model, ask("hello", response_schema=SCHEMA))
    assert json.loads(text_of(events)) == {"severity": "low"}
    [body] = bodies(server)
    form = (body.get("response_format") or {}).get("json_schema") or body["text"]["format"]
    assert (form["name"], form["schema"]) == ("answer", SCHEMA)


@pytest.fixture(params=["chat", "responses"])
async def strict(request: pytest.FixtureRequest) -> AsyncIterator[tuple[ScriptedServer, SchemaByTool]]:
    """A provider that refuses schemas, and a model that finds its way round."""
    is_chat = request.param == "chat"
    with ScriptedServer(ServerOptions(rejects=("response_format" if is_chat else "text",))) as server:
        endpoint = Endpoint(provider=f"strict-{server.port}", base_url=server.base_url, api_key="k")
        adapter = ChatCompletionsModel if is_chat else ResponsesModel

        def passes_over(_name: str, request: ModelRequest) -> bool:
            return bool(request.tools) in model_memory.of(server.base_url, "scripted").refused_schemas

        yield server, SchemaByTool(adapter(endpoint, "scripted"), passes_over=passes_over)
        await close_clients()


Strict = tuple[ScriptedServer, SchemaByTool]


async def test_a_refused_schema_is_asked_for_by_a_tool_and_remembered(strict: Strict) -> None:
    server, model = strict
    request = ask('say: {"severity": "high"}', response_schema=SCHEMA)
    for _ in range(2):
        events = await collect(model, request)
        assert json.loads(text_of(events)) == {"severity": "high"}
        assert calls(events) == []
        assert finish(events).reason is FinishReason.STOP
    first, second, third = bodies(server)
    assert "response_format" in first or "text" in first
    assert second == third == model.describe(request)
    [tool] = second["tools"]
    assert (tool.get("function") or tool)["name"] == NAME
    assert NAME in json.dumps(second["tool_choice"])


async def test_other_tools_come_first_and_the_answer_after_them(strict: Strict) -> None:
    server, model = strict
    events = await collect(model, ask('call tool read {"path": "a"}', tools=(READ,), response_schema=SCHEMA))
    assert calls(events) == [("read", '{"path": "a"}')]
    assert finish(events).reason is FinishReason.TOOL_CALLS
    assert bodies(server)[-1]["tool_choice"] == "required"


async def test_an_answer_that_is_no_object_is_wrapped_for_the_tool(strict: Strict) -> None:
    server, model = strict
    request = ask('say: {"answer": [1, 2]}', response_schema={"type": "array", "items": {"type": "integer"}})
    assert text_of(await collect(model, request)) == "[1,2]"
    tool = bodies(server)[-1]["tools"][0]
    assert (tool.get("function") or tool)["parameters"]["required"] == ["answer"]


async def test_a_request_may_ask_for_the_tool_at_once(server: ScriptedServer, http_model: LanguageModel) -> None:
    request = ask('say: {"severity": "low"}', response_schema=SCHEMA, response_by_tool=True)
    assert text_of(await collect(SchemaByTool(http_model), request)) == '{"severity": "low"}'
    assert len(bodies(server)) == 1


async def test_text_beside_the_answer_is_left_out_and_text_without_one_is_kept(strict: Strict) -> None:
    _, model = strict
    beside = f'say: Here it is.\ncall tool {NAME} {{"severity": "low"}}'
    assert text_of(await collect(model, ask(beside, response_schema=SCHEMA))) == '{"severity": "low"}'


@pytest.fixture
def no_waits() -> RetryPolicy:
    return replace(POLICY, first_seconds=0.0)


@pytest.mark.parametrize(("max_retries", "asked"), [(None, 3), (0, 1), (1, 2)])
async def test_a_request_may_have_a_limit_of_retries(
    server: ScriptedServer, chat_model: LanguageModel, no_waits: RetryPolicy, max_retries: int | None, asked: int
) -> None:
    request = ask("error 429 retry-after 0", max_retries=max_retries)
    with pytest.raises(RateLimited):
        await collect(Retrying(chat_model, policy=no_waits), request)
    assert len(bodies(server)) == asked


async def test_text_deltas_stay_text_without_a_schema(chat_model: LanguageModel) -> None:
    events = await collect(SchemaByTool(chat_model), ask("say: one two"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["one ", "two"]
