"""What compatible servers really send."""

import json
from typing import Any

import pytest

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from chat.errors import Overloaded, RateLimited
from chat.llm.adapters.chat_reader import ChatReader
from chat.llm.adapters.usage import read_usage


def read(*deltas: dict[str, Any], finish: str = "stop", used: tuple[str, ...] = ()) -> list[ModelEvent]:
    reader = ChatReader("acme/m", (), set(used))
    events: list[ModelEvent] = []
    for delta in deltas:
        events += reader.feed(json.dumps({"id": "r1", "model": "m", "choices": [{"delta": delta}]}).encode())
    events += reader.feed(json.dumps({"choices": [{"delta": {}, "finish_reason": finish}]}).encode())
    events += reader.feed(b"[DONE]")
    return events + reader.end()


def call(arguments: Any = None, **piece: Any) -> dict[str, Any]:
    function = {"name": piece.pop("name", None), "arguments": arguments}
    return {"tool_calls": [{**piece, "function": function}]}


def calls_of(events: list[ModelEvent]) -> list[tuple[str, str]]:
    return [(event.tool_name, event.arguments) for event in events if isinstance(event, ToolCallEnd)]


def ids_of(events: list[ModelEvent]) -> list[str]:
    return [event.call_id for event in events if isinstance(event, ToolCallStart)]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_comes_under_two_names(name: str) -> None:
    assert read({name: "hmm"})[0] == ReasoningDelta(text="hmm")


def test_reasoning_under_both_names_is_read_once() -> None:
    events = read({"reasoning_content": "hmm", "reasoning": "hmm"})
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["hmm", ""]


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}, {"type": "text", "text": "yes"}, 7]
    assert read({"content": parts})[:2] == [ReasoningDelta(text="hmm"), TextDelta(text="yes")]


def test_empty_pieces_are_no_events() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": ""}]}, {"type": "text", "text": ""}]
    empty: list[dict[str, Any]] = [{key: ""} for key in ("content", "reasoning_content", "refusal")]
    assert read(*empty, {"content": parts}, {"content": "yes"})[0] == TextDelta(text="yes")


def test_a_call_in_pieces() -> None:
    events = read(
        call("", index=0, id="a", name="read"), call('{"x"', index=0), call(":1}", index=0), finish="tool_calls"
    )
    assert events[0] == ToolCallStart(call_id="a", tool_name="read")
    assert events[1:3] == [ToolCallDelta(call_id="a", text='{"x"'), ToolCallDelta(call_id="a", text=":1}")]
    assert calls_of(events) == [("read", '{"x":1}')]


def test_the_id_sent_again_is_the_same_call() -> None:
    events = read(call('{"x"', index=0, id="a", name="read"), call(":1}", index=0, id="a", name="read"))
    assert calls_of(events) == [("read", '{"x":1}')]


def test_parallel_calls_interleave_by_index() -> None:
    events = read(
        call('{"a"', index=0, id="a", name="one"),
        call('{"b"', index=1, id="b", name="two"),
        call(":1}", index=0),
        call(":2}", index=1),
    )
    assert calls_of(events) == [("one", '{"a":1}'), ("two", '{"b":2}')]


def test_several_whole_calls_in_one_chunk() -> None:
    pieces = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("one", "two")]
    assert calls_of(read({"tool_calls": pieces})) == [("one", "{}"), ("two", "{}")]


def test_ids_distinguish_calls_when_every_index_is_zero() -> None:
    events = read(call('{"a":1}', index=0, id="a", name="one"), call('{"b":2}', index=0, id="b", name="two"))
    assert calls_of(events) == [("one", '{"a":1}'), ("two", '{"b":2}')]


def test_names_distinguish_calls_when_there_are_neither_index_nor_id() -> None:
    events = read(call('{"a":1}', name="one"), call('{"b":2}', name="two"))
    assert calls_of(events) == [("one", '{"a":1}'), ("two", '{"b":2}')]
    assert len(set(ids_of(events))) == 2


def test_pieces_without_index_belong_to_the_last_call() -> None:
    events = read(call('{"a"', id="a", name="one"), call(":1}"))
    assert calls_of(events) == [("one", '{"a":1}')]


def test_a_missing_id_is_made_up() -> None:
    (made,) = ids_of(read(call("{}", index=0, name="read")))
    assert made.startswith("call_")


def test_an_id_that_the_conversation_has_used_is_replaced() -> None:
    (made,) = ids_of(read(call("{}", index=0, id="call_0", name="read"), used=("call_0",)))
    assert made not in ("", "call_0")


def test_arguments_may_be_an_object() -> None:
    assert calls_of(read(call({"x": 1}, index=0, id="a", name="read"))) == [("read", '{"x":1}')]


def test_no_arguments_are_an_empty_object() -> None:
    assert calls_of(read(call(None, index=0, id="a", name="now"))) == [("now", "{}")]


def test_a_name_that_comes_late_starts_the_call_late() -> None:
    events = read(call('{"x"', index=0, id="a"), call(":1}", index=0, name="read"))
    assert events[0] == ToolCallStart(call_id="a", tool_name="read")
    assert "".join(event.text for event in events if isinstance(event, ToolCallDelta)) == '{"x":1}'


def test_a_call_without_any_name_still_starts_before_it_ends() -> None:
    events = read(call("{}", index=0, id="a"))
    assert [type(event) for event in events[:3]] == [ToolCallStart, ToolCallDelta, ToolCallEnd]


@pytest.mark.parametrize(
    ("finish", "with_call", "reason"),
    [
        ("stop", False, FinishReason.STOP),
        ("stop", True, FinishReason.TOOL_CALLS),
        ("tool_calls", True, FinishReason.TOOL_CALLS),
        ("tool_calls", False, FinishReason.STOP),
        ("function_call", True, FinishReason.TOOL_CALLS),
        ("length", True, FinishReason.LENGTH),
        ("max_tokens", False, FinishReason.LENGTH),
        ("content_filter", False, FinishReason.CONTENT_FILTER),
        ("error", False, FinishReason.ERROR),
        ("something new", False, FinishReason.OTHER),
    ],
)
def test_finish_reasons_are_mapped(finish: str, with_call: bool, reason: FinishReason) -> None:
    deltas = [call("{}", index=0, id="a", name="read")] if with_call else [{"content": "x"}]
    end = read(*deltas, finish=finish)[-1]
    assert isinstance(end, Finish)
    assert end.reason is reason


def test_the_end_mark_alone_is_an_end() -> None:
    reader = ChatReader("acme/m", (), set())
    reader.feed(b'{"choices":[{"delta":{"content":"x"}}]}')
    assert not reader.finish_seen
    reader.feed(b"[DONE]")
    assert reader.finish_seen


def test_other_alternatives_are_ignored() -> None:
    reader = ChatReader("acme/m", (), set())
    assert reader.feed(b'{"choices":[{"index":1,"delta":{"content":"x"}}]}') == []
    reader.feed(b'{"choices":[{"delta":{},"finish_reason":"stop"}]}')
    assert not reader.has_words


def test_usage_after_the_finish_counts_and_garbage_does_not() -> None:
    reader = ChatReader("acme/m", (), set())
    reader.feed(b'{"id":"r1","model":"m","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}')
    reader.feed(b'{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}')
    assert reader.feed(b"not JSON") == []
    assert reader.is_done
    assert reader.end() == [
        Finish(reason=FinishReason.STOP, usage=Usage(input_tokens=7, output_tokens=2), response_id="r1", model_name="m")
    ]


def test_usage_is_read_from_every_spelling() -> None:
    assert read_usage({"input_tokens": 5, "output_tokens": 3}) == Usage(input_tokens=5, output_tokens=3)
    assert read_usage({"prompt_tokens": 5, "prompt_cache_hit_tokens": 4}) == Usage(input_tokens=5, cached_tokens=4)
    assert read_usage({"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}}) == Usage(
        output_tokens=5, reasoning_tokens=3
    )
    assert read_usage({"prompt_tokens": "many", "completion_tokens": None}) == Usage()
    assert read_usage([1]) == Usage()


def test_an_error_inside_the_stream_is_raised() -> None:
    reader = ChatReader("acme/m", (), set())
    with pytest.raises(RateLimited):
        reader.feed(b'{"error":{"code":429,"message":"slow down"},"choices":[]}')


@pytest.mark.parametrize("data", [b"{", b"[1]", b'{"choices": 5}', b"\xff\xfe", b'"text"'])
def test_garbage_is_the_providers_failure(data: bytes) -> None:
    with pytest.raises(Overloaded):
        ChatReader("acme/m", (), set()).feed(data)
