"""The events of the Responses API."""

import json
from typing import Any

import pytest

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from chat.core.model.provider_data import ProviderData
from chat.errors import ContextOverflow, Overloaded, RateLimited
from chat.llm.adapters.responses_reader import ResponsesReader

COMPLETED = {"type": "response.completed", "response": {"id": "r1", "model": "m", "usage": {"input_tokens": 3}}}


def read(*events: dict[str, Any], used: tuple[str, ...] = ()) -> list[ModelEvent]:
    reader = ResponsesReader("acme/m", (), set(used))
    out: list[ModelEvent] = []
    for event in events:
        out += reader.feed(json.dumps(event).encode())
    return out + reader.end()


def item(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": {"id": f"i{index}", **fields}}


def test_summary_parts_are_paragraphs() -> None:
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0}
    delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0}
    events = read(
        {**part, "summary_index": 0},
        {**delta, "delta": "one"},
        {**part, "summary_index": 1},
        {**delta, "delta": "two"},
        COMPLETED,
    )
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "one\n\ntwo"


def test_sealed_reasoning_is_metadata_of_the_part() -> None:
    events = read(item("done", type="reasoning", encrypted_content="opaque"), COMPLETED)
    sealed = {"id": "i0", "summary": [], "encrypted_content": "opaque"}
    data = ProviderData(model="acme/m", fields={"reasoning": sealed})
    assert events[0] == ReasoningDelta(text="", provider_metadata=data.metadata())


def test_arguments_that_come_only_at_the_end() -> None:
    events = read(
        item("added", type="function_call", call_id="a", name="read"),
        item("done", type="function_call", call_id="a", name="read", arguments='{"x":1}'),
        COMPLETED,
    )
    assert [event.arguments for event in events if isinstance(event, ToolCallEnd)] == ['{"x":1}']


def test_a_call_never_announced_still_starts() -> None:
    events = read(item("done", type="function_call", call_id="a", name="read", arguments="{}"), COMPLETED)
    assert events[0] == ToolCallStart(call_id="a", tool_name="read")


def test_a_call_never_closed_ends_with_the_answer() -> None:
    events = read(
        item("added", type="function_call", call_id="a", name="read"),
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"x":1}'},
        COMPLETED,
    )
    assert ToolCallEnd(call_id="a", tool_name="read", arguments='{"x":1}') in events
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.reason is FinishReason.TOOL_CALLS


def test_calls_are_distinguished_by_item_when_there_is_no_index() -> None:
    added = {"type": "response.output_item.added"}
    events = read(
        {**added, "item": {"id": "i1", "type": "function_call", "call_id": "a", "name": "one"}},
        {**added, "item": {"id": "i2", "type": "function_call", "call_id": "b", "name": "two"}},
        {"type": "response.function_call_arguments.delta", "item_id": "i2", "delta": '{"b":2}'},
        {"type": "response.function_call_arguments.delta", "item_id": "i1", "delta": '{"a":1}'},
        COMPLETED,
    )
    ends = {event.tool_name: event.arguments for event in events if isinstance(event, ToolCallEnd)}
    assert ends == {"one": '{"a":1}', "two": '{"b":2}'}


@pytest.mark.parametrize("call_id", ["", "used"])
def test_missing_and_repeated_ids_are_replaced(call_id: str) -> None:
    events = read(item("added", type="function_call", call_id=call_id, name="read"), COMPLETED, used=("used",))
    start = events[0]
    assert isinstance(start, ToolCallStart)
    assert start.call_id not in ("", "used")


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("max_output_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("new", FinishReason.OTHER),
    ],
)
def test_incomplete_answers_say_why(why: str, reason: FinishReason) -> None:
    end = read({"type": "response.incomplete", "response": {"incomplete_details": {"reason": why}}})[-1]
    assert isinstance(end, Finish)
    assert end.reason is reason


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, RateLimited),
        ({"type": "error", "error": {"code": "server_error", "message": ""}}, Overloaded),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded"}}}, ContextOverflow),
        ({"type": "response.failed", "response": {}}, Overloaded),
    ],
)
def test_failures_inside_the_stream_are_classified(event: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        read(event)


def test_unknown_events_are_skipped() -> None:
    events = read(
        {"type": "response.new_thing.delta", "delta": "x"}, {"type": "keepalive"}, {"type": "x", "delta": {}}, COMPLETED
    )
    assert [type(event) for event in events] == [Finish]


def test_refusals_are_marked() -> None:
    assert read({"type": "response.refusal.delta", "delta": "No."}, COMPLETED)[0] == TextDelta(text="No.", refusal=True)


@pytest.mark.parametrize("data", [b"{", b"[1]", b'{"type": 5}', b"\xff"])
def test_garbage_is_the_providers_failure(data: bytes) -> None:
    with pytest.raises(Overloaded):
        ResponsesReader("acme/m", (), set()).feed(data)
