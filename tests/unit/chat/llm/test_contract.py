"""What every `LanguageModel` promises, asked of each adapter, of the double, and of a real model."""

import asyncio
import contextlib
import json
from collections.abc import Callable

import pytest

from chat.core.model.language_model import (
    AssistantMessage,
    Finish,
    FinishReason,
    LanguageModel,
    ModelSettings,
    TextContent,
    TextDelta,
    ToolCallContent,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolMessage,
    ToolSpec,
)
from chat.errors import AnswerEmpty, ContentFiltered, ContextOverflow, ModelAuth, NetworkLost, Overloaded, RateLimited
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedModel
from chat.llm.testing import collect, collect_until_error, make_request, reasoning_of, text_of, user

READ = ToolSpec(name="read", description="Read a file.", input_schema={"type": "object", "properties": {}})
SCRIPTED = ("chat", "responses", "double")


def build(kind: str, request: pytest.FixtureRequest) -> LanguageModel:
    if kind == "double":
        return ScriptedModel()
    make: Callable[..., Endpoint] = request.getfixturevalue("endpoint_of")
    if kind == "local":
        base_url = request.getfixturevalue("local_base_url")
        local = Endpoint(provider="local", base_url=base_url, can_call_tools=False, accepts_images=False)
        return ChatCompletionsModel(local, "smollm2-135m")
    endpoint = make(request.getfixturevalue("server"))
    return ChatCompletionsModel(endpoint, "scripted") if kind == "chat" else ResponsesModel(endpoint, "scripted")


@pytest.fixture(params=[*SCRIPTED, "local"])
def any_model(request: pytest.FixtureRequest) -> LanguageModel:
    request.getfixturevalue("endpoint_of")
    return build(request.param, request)


@pytest.fixture(params=SCRIPTED)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    request.getfixturevalue("endpoint_of")
    return build(request.param, request)


async def test_an_answer_has_text_and_ends_with_one_finish(any_model: LanguageModel) -> None:
    request = make_request("Say hello to the world.", tools=(READ,), settings=ModelSettings(max_output_tokens=48))
    events = await collect(any_model, request)
    assert text_of(events).strip()
    assert [type(event) for event in events].count(Finish) == 1
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.usage.input_tokens > 0
    assert finish.usage.output_tokens > 0


async def test_the_name_is_provider_and_model(any_model: LanguageModel) -> None:
    provider, slash, name = any_model.name.partition("/")
    assert all((provider, slash, name))


async def test_the_description_is_json_and_holds_the_message(any_model: LanguageModel) -> None:
    text = json.dumps(any_model.describe(make_request("find this sentence")))
    assert "find this sentence" in text
    assert "sk-test" not in text


async def test_closing_after_the_first_text_ends_the_stream(any_model: LanguageModel) -> None:
    stream = any_model.stream(make_request("rate 50/s\nstream 500 words\nTell a very long story."))
    async with asyncio.timeout(20):
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_cancelling_the_task_ends_the_stream(any_model: LanguageModel) -> None:
    seen = asyncio.Event()

    async def read() -> None:
        async with contextlib.aclosing(
            any_model.stream(make_request("rate 50/s\nstream 500 words\nTell more."))
        ) as events:
            async for _ in events:
                seen.set()

    task = asyncio.create_task(read())
    async with asyncio.timeout(20):
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_one_model_serves_several_streams_at_once(any_model: LanguageModel) -> None:
    settings = ModelSettings(max_output_tokens=8)
    requests = [make_request(f"Count to {number}.", settings=settings) for number in range(3)]
    answers = await asyncio.gather(*(collect(any_model, request) for request in requests))
    assert all(isinstance(events[-1], Finish) for events in answers)


async def test_text_arrives_exactly(model: LanguageModel) -> None:
    events = await collect(model, make_request("say: Füße, 日本語 and \t tabs — 😀"))
    assert text_of(events) == "Füße, 日本語 and \t tabs — 😀"


async def test_reasoning_is_kept_apart_from_text(model: LanguageModel) -> None:
    events = await collect(model, make_request("reason: let me think\nsay: done"))
    assert (reasoning_of(events), text_of(events)) == ("let me think", "done")


async def test_parallel_calls_start_grow_and_end(model: LanguageModel) -> None:
    script = 'say: Reading.\nparallel calls\ncall tool read {"path": "a.txt"}\ncall tool read {"path": "b.txt"}'
    events = await collect(model, make_request(script, tools=(READ,)))
    starts = [event.call_id for event in events if isinstance(event, ToolCallStart)]
    ends = {event.call_id: event.arguments for event in events if isinstance(event, ToolCallEnd)}
    pieces = {
        call_id: "".join(
            event.text for event in events if isinstance(event, ToolCallDelta) and event.call_id == call_id
        )
        for call_id in starts
    }
    assert len(set(starts)) == 2
    assert [json.loads(ends[call_id])["path"] for call_id in starts] == ["a.txt", "b.txt"]
    assert pieces == ends
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.reason is FinishReason.TOOL_CALLS


async def test_the_result_of_a_call_reaches_the_model(model: LanguageModel) -> None:
    script = 'call tool read {"path": "a.txt"}\nsay: It says: {result}.'
    asked = AssistantMessage(content=(ToolCallContent(call_id="c1", tool_name="read", input={"path": "a.txt"}),))
    result = ToolMessage(call_id="c1", tool_name="read", output={"text": "hello"})
    events = await collect(model, make_request(script, asked, result, tools=(READ,)))
    assert text_of(events) == 'It says: {"text":"hello"}.'


async def test_malformed_arguments_arrive_as_they_are(model: LanguageModel) -> None:
    events = await collect(model, make_request("malformed tool args read", tools=(READ,)))
    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(end.arguments)


async def test_a_refusal_is_marked(model: LanguageModel) -> None:
    events = await collect(model, make_request("refuse: No."))
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(text="No.", refusal=True)]


async def test_the_finish_reason_is_reported(model: LanguageModel) -> None:
    finish = (await collect(model, make_request("say: half a sen\nfinish length")))[-1]
    assert isinstance(finish, Finish)
    assert finish.reason is FinishReason.LENGTH


async def test_an_answer_that_a_filter_stopped_ends_with_an_error_behind_its_text(model: LanguageModel) -> None:
    events, error = await collect_until_error(model, make_request("say: half a sen\nfinish content_filter"))
    assert text_of(events) == "half a sen"
    assert isinstance(error, ContentFiltered)
    assert not error.data["should_retry"]


async def test_an_answer_without_a_word_is_an_error(model: LanguageModel) -> None:
    events, error = await collect_until_error(model, make_request("reason: Hm.\nsay: \nfinish stop"))
    assert text_of(events) == ""
    assert isinstance(error, AnswerEmpty)
    assert "choose another model" in error.message


async def test_usage_is_counted(model: LanguageModel) -> None:
    finish = (await collect(model, make_request("say: hi\nusage 100 20 cached 60 reasoning 5")))[-1]
    assert isinstance(finish, Finish)
    usage = finish.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == (100, 20, 60, 5)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("error 429", RateLimited),
        ("error 500", Overloaded),
        ("error 529", Overloaded),
        ("error 401", ModelAuth),
        ("context overflow", ContextOverflow),
        ("say: one two three\ndrop after 1", NetworkLost),
        ("say: one two three\nend after 1", NetworkLost),
        ("say: one two three\nend after 3", NetworkLost),
        ("say: one two three\nerror in stream after 1 code overloaded_error", Overloaded),
        ("say: one two three\nerror in stream after 1 code rate_limit_exceeded", RateLimited),
        ("say: one two three\nerror in stream after 1 code context_length_exceeded", ContextOverflow),
        ("say: one two three\ngarbage after 1", Overloaded),
    ],
)
async def test_failures_are_classified(model: LanguageModel, script: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        await collect(model, make_request(script))
    assert type(caught.value) is kind


async def test_what_was_streamed_before_a_break_arrives(model: LanguageModel) -> None:
    seen, error = await collect_until_error(model, make_request("say: one two three four\ndrop after 2"))
    assert isinstance(error, NetworkLost)
    assert text_of(seen) == "one two "


async def test_an_interrupted_answer_is_continued_byte_for_byte(model: LanguageModel) -> None:
    script = "stream 40 words\ndrop after 17"
    seen, error = await collect_until_error(model, make_request(script))
    assert isinstance(error, NetworkLost)
    partial = AssistantMessage(content=(TextContent(text=text_of(seen)),))
    rest = await collect(model, make_request(script, partial, user("Go on exactly where you left off.")))
    undisturbed = await collect(model, make_request(script))
    assert text_of(seen) + text_of(rest) == text_of(undisturbed)
