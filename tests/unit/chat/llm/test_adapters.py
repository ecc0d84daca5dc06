"""The adapters against a real server on loopback: what they send, what they close, what they remember."""

import asyncio
import base64
import contextlib
import time
from collections.abc import Callable

import pytest

from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    Finish,
    LanguageModel,
    ModelRequest,
    ModelSettings,
    ReasoningContent,
    TextContent,
    TextDelta,
    ToolCallContent,
    ToolCallEnd,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from chat.core.model.provider_data import ProviderData
from chat.errors import ModelAuth, ModelError, ModelRejected, NetworkLost
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.llm.testing import collect, collect_until_error, make_request, text_of

PICTURE = FileContent(media_type="image/png", data=b"\x89PNG" + b"x" * 600, filename="a.png")
READ = ToolSpec(name="read", description="Read a file.", input_schema={"type": "object"})
SEALED = ProviderData(model="acme/scripted", fields={"reasoning": {"id": "rs_1", "encrypted_content": "opaque"}})
HISTORY = ModelRequest(
    system="Be brief.",
    messages=(
        UserMessage(content=(TextContent(text="look"), PICTURE)),
        AssistantMessage(
            content=(
                ReasoningContent(text="hmm", provider_metadata=SEALED.metadata()),
                ReasoningContent(text="half a thought"),
                TextContent(text="Reading."),
                ToolCallContent(call_id="c1", tool_name="read", input={"path": "a"}),
            )
        ),
        ToolMessage(call_id="c1", tool_name="read", output={"lines": 3}),
        UserMessage(content=(TextContent(text="thanks"),)),
    ),
    tools=(READ,),
    tool_choice="read",
    settings=ModelSettings(
        max_output_tokens=10,
        temperature=0.5,
        top_p=0.9,
        stop_sequences=("END",),
        seed=7,
        parallel_tool_calls=False,
        response_schema={"type": "object"},
        extra={"service_tier": "flex"},
    ),
)


async def eventually(check: Callable[[], bool], seconds: float) -> float:
    """Wait until `check` holds; returns how long it took."""
    start = time.monotonic()
    while not check():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        await asyncio.sleep(0.01)
    return time.monotonic() - start


def has_ended(server: ScriptedServer, how: str) -> bool:
    return [line["how"] for line in server.log("end")] == [how]


async def test_the_description_is_the_body_that_is_sent(http_model: LanguageModel, server: ScriptedServer) -> None:
    plain = make_request("hello", tools=(READ,), settings=ModelSettings(max_output_tokens=10, seed=3))
    await collect(http_model, plain)
    assert server.requests() == [http_model.describe(plain)]


async def test_chat_completions_sends_a_history(chat_model: LanguageModel, server: ScriptedServer) -> None:
    await collect(chat_model, HISTORY)
    (body,) = server.requests()
    picture = body["messages"][1]["content"][1]["image_url"]["url"]
    assert picture.startswith("data:image/png;base64,iVBO")
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["messages"][2] == {
        "role": "assistant",
        "content": "Reading.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}],
    }
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": '{"lines":3}'}
    del body["messages"]
    assert body == {
        "model": "scripted",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Read a file.", "parameters": {"type": "object"}},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "read"}},
        "parallel_tool_calls": False,
        "max_tokens": 10,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}},
        "service_tier": "flex",
    }


async def test_responses_sends_a_history_with_sealed_reasoning(
    responses_model: LanguageModel, server: ScriptedServer
) -> None:
    await collect(responses_model, HISTORY)
    (body,) = server.requests()
    assert body["store"] is False
    assert body["instructions"] == "Be brief."
    assert body["input"][0]["content"][1]["image_url"].startswith("data:image/png;base64,")
    assert body["input"][1:] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hmm"}],
            "encrypted_content": "opaque",
        },
        {"role": "assistant", "content": "Reading."},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"lines":3}'},
        {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    ]
    assert body["tools"][0]["name"] == "read"
    assert body["tool_choice"] == {"type": "function", "name": "read"}
    assert body["text"]["format"]["schema"] == {"type": "object"}
    assert body["max_output_tokens"] == 10


async def test_an_answer_of_reasoning_alone_is_not_sent_empty(
    http_model: LanguageModel, server: ScriptedServer
) -> None:
    thought = AssistantMessage(content=(ReasoningContent(text="half a thought"),))
    events = await collect(http_model, make_request("marker: m\nsay: whole", thought, "Go on where it left off."))
    assert text_of(events) == "whole"
    assert "half a thought" not in str(server.requests())
    if isinstance(http_model, ChatCompletionsModel):
        assert [message["role"] for message in server.requests()[0]["messages"]] == ["system", "user"]


async def test_two_messages_of_a_person_go_as_one(chat_model: LanguageModel, server: ScriptedServer) -> None:
    pictured = UserMessage(content=(TextContent(text="three"), PICTURE))
    await collect(chat_model, make_request("one", "two", pictured))
    (said,) = server.requests()[0]["messages"][1:]
    assert [part.get("text") for part in said["content"]] == ["one\n\ntwo", "three", None]


async def test_a_model_without_vision_reads_a_note_about_the_picture(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    model = ChatCompletionsModel(endpoint_of(server, accepts_images=False), "scripted")
    await collect(model, make_request(UserMessage(content=(TextContent(text="look"), PICTURE))))
    content = server.requests()[0]["messages"][1]["content"]
    assert content == "look\n\n[A file is attached that you cannot see: 'a.png', image/png, 604 bytes]"


DOCUMENT = FileContent(media_type="application/pdf", data=b"%PDF-1.7 text", filename="plan.pdf")
DOCUMENT_URL = "data:application/pdf;base64," + base64.b64encode(DOCUMENT.data).decode()


async def test_a_document_is_sent_where_the_endpoint_takes_it(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    request = make_request(UserMessage(content=(TextContent(text="sum it up"), DOCUMENT)))
    endpoint = endpoint_of(server, accepts_documents=True)
    await collect(ChatCompletionsModel(endpoint, "scripted"), request)
    assert server.requests()[-1]["messages"][-1]["content"] == [
        {"type": "text", "text": "sum it up"},
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": DOCUMENT_URL}},
    ]
    await collect(ResponsesModel(endpoint, "scripted"), request)
    assert server.requests()[-1]["input"][-1]["content"] == [
        {"type": "input_text", "text": "sum it up"},
        {"type": "input_file", "filename": "plan.pdf", "file_data": DOCUMENT_URL},
    ]


async def test_a_document_is_named_where_the_endpoint_does_not_take_it(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    request = make_request(UserMessage(content=(TextContent(text="sum it up"), DOCUMENT)))
    for adapter in (ChatCompletionsModel, ResponsesModel):
        await collect(adapter(endpoint_of(server, accepts_documents=False), "scripted"), request)
        assert "'plan.pdf', application/pdf, 13 bytes" in str(server.requests()[-1])
        assert DOCUMENT_URL not in str(server.requests()[-1])


async def test_a_model_that_cannot_call_gets_no_tools(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    for adapter in (ChatCompletionsModel, ResponsesModel):
        model = adapter(endpoint_of(server, can_call_tools=False), "scripted")
        await collect(model, make_request("hello", tools=(READ,), settings=ModelSettings(parallel_tool_calls=True)))
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(server.requests()[-1])


async def test_headers_and_the_key_go_along(endpoint_of: Callable[..., Endpoint]) -> None:
    with ScriptedServer(ServerOptions(api_key="sk-right-0123456789")) as server:
        right = ChatCompletionsModel(endpoint_of(server, api_key="sk-right-0123456789"), "scripted")
        assert text_of(await collect(right, make_request("say: hi"))) == "hi"
        wrong = ChatCompletionsModel(endpoint_of(server, api_key="sk-wrong-0123456789"), "scripted")
        with pytest.raises(ModelAuth) as caught:
            await collect(wrong, make_request("say: hi"))
        assert "sk-wrong" not in f"{caught.value!r} {caught.value.data} {caught.value.__cause__!r}"


async def test_a_server_without_stream_options_is_remembered(endpoint_of: Callable[..., Endpoint]) -> None:
    with ScriptedServer(ServerOptions(rejects=("stream_options",))) as server:
        model = ChatCompletionsModel(endpoint_of(server), "scripted")
        request = make_request("say: hi")
        for _ in range(2):
            assert text_of(await collect(model, request)) == "hi"
        assert ["stream_options" in body for body in server.requests()] == [True, False, False]
        assert "stream_options" not in model.describe(request)


async def test_a_model_that_does_not_reason_is_remembered(endpoint_of: Callable[..., Endpoint]) -> None:
    with ScriptedServer(ServerOptions(rejects=("reasoning",))) as server:
        model = ResponsesModel(endpoint_of(server), "gpt-5-plain")
        for _ in range(2):
            assert text_of(await collect(model, make_request("say: hi"))) == "hi"
        assert ["reasoning" in body for body in server.requests()] == [True, False, False]


async def test_an_effort_that_was_not_sent_is_named(endpoint_of: Callable[..., Endpoint]) -> None:
    with ScriptedServer(ServerOptions(rejects=("reasoning",))) as server:
        model = ResponsesModel(endpoint_of(server), "gpt-5-plain")
        request = make_request("say: hi", settings=ModelSettings(reasoning_effort="low"))
        [finish] = [event for event in await collect(model, request) if isinstance(event, Finish)]
        assert finish.warnings == ("acme/gpt-5-plain does not support reasoning_effort; it was not sent.",)


async def test_a_refused_effort_is_a_failure_and_not_remembered(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    model = ResponsesModel(endpoint_of(server), "gpt-5")
    settings = ModelSettings(reasoning_effort="enormous")
    with pytest.raises(ModelRejected):
        await collect(model, make_request("error 400 code unsupported_value_of_reasoning_effort", settings=settings))
    await collect(model, make_request("say: hi", settings=ModelSettings(reasoning_effort="low")))
    assert [body["reasoning"]["effort"] for body in server.requests()] == ["enormous", "low"]


async def test_a_server_that_answers_in_one_piece_is_understood(
    server: ScriptedServer, endpoint_of: Callable[..., Endpoint]
) -> None:
    model = ChatCompletionsModel(endpoint_of(server), "scripted")
    settings = ModelSettings(extra={"stream": False})
    script = 'reason: hmm\nsay: hi there\ncall tool read {"path": "a"}'
    events = await collect(model, make_request(script, settings=settings))
    assert text_of(events) == "hi there"
    assert isinstance(events[-1], Finish)
    assert events[-1].usage.output_tokens > 0


async def test_a_finished_answer_leaves_its_connection_for_the_next(
    http_model: LanguageModel, server: ScriptedServer
) -> None:
    for number in range(3):
        await collect(http_model, make_request(f"say: number {number}"))
    assert {line["connection"] for line in server.log("request")} == {1}


@pytest.mark.parametrize("script", ["rate 20/s\nstream 400 words", "stream 3 words\nstall after 2"])
async def test_closing_the_generator_closes_the_connection_at_once(
    http_model: LanguageModel, server: ScriptedServer, script: str
) -> None:
    stream = http_model.stream(make_request(script))
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()
    await eventually(lambda: has_ended(server, "closed"), 1.0)


@pytest.mark.parametrize("script", ["rate 20/s\nstream 400 words", "stall after 0", "hang"])
async def test_cancelling_the_task_closes_the_connection_at_once(
    http_model: LanguageModel, server: ScriptedServer, script: str
) -> None:
    task = asyncio.create_task(collect(http_model, make_request(script)))
    await eventually(lambda: bool(server.log("request")), 5.0)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: has_ended(server, "closed"), 1.0)


async def test_an_error_of_the_consumer_closes_the_connection(
    http_model: LanguageModel, server: ScriptedServer
) -> None:
    async def read() -> None:
        async with contextlib.aclosing(http_model.stream(make_request("rate 20/s\nstream 400 words"))) as events:
            async for _ in events:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await read()
    await eventually(lambda: has_ended(server, "closed"), 1.0)


async def test_a_refused_connection_is_network_lost(
    endpoint_of: Callable[..., Endpoint], server: ScriptedServer
) -> None:
    endpoint = endpoint_of(server)
    server.stop()
    with pytest.raises(NetworkLost, match="cannot be reached"):
        await collect(ChatCompletionsModel(endpoint, "scripted"), make_request("hi"))


async def test_a_provider_that_dies_is_network_lost(http_model: LanguageModel, server: ScriptedServer) -> None:
    async def die() -> None:
        await eventually(lambda: bool(server.log("chunk")), 5.0)
        await asyncio.to_thread(server.stop)

    killer = asyncio.create_task(die())
    seen, error = await collect_until_error(http_model, make_request("rate 50/s\nstream 400 words"))
    await killer
    assert isinstance(error, NetworkLost)
    assert text_of(seen)


async def test_deviating_servers_are_understood(chat_model: LanguageModel) -> None:
    lines = ['call tool one {"a": 1} no-id no-index whole', 'call tool two {"b": 2} no-id no-index whole']
    script = "\n".join(["say: x", *lines])
    events = await collect(chat_model, make_request(script))
    ends = [(event.tool_name, event.arguments) for event in events if isinstance(event, ToolCallEnd)]
    assert ends == [("one", '{"a": 1}'), ("two", '{"b": 2}')]


async def test_errors_are_of_the_model_family(http_model: LanguageModel) -> None:
    for status in (400, 401, 404, 408, 409, 422, 429, 500, 503):
        with pytest.raises(ModelError):
            await collect(http_model, make_request(f"error {status}"))
