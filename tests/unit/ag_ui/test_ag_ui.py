"""The events of AG-UI that chunks give: valid by the published schemas, and in an order that its clients can follow."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from chat.core.wire import chunks
from chat.core.wire.ag_ui import KINDS, AgUiEncoder, row_kind
from chat.core.wire.chunks import Chunk
from tests.budget import examples
from tests.properties.chunk_strategies import streams as chunk_lists
from tests.unit.ag_ui.published_schemas import wrong_events
from tests.wire.recordings import NAMES, frames_of

CALL = [chunks.tool_input_start("c1", "add"), chunks.tool_input_available("c1", "add", {"a": 1})]
OPENS = {"TEXT_MESSAGE_START": "TEXT_MESSAGE_END", "REASONING_MESSAGE_START": "REASONING_MESSAGE_END"}


def encoded(given_chunks: list[Chunk], outcome: str = "completed") -> list[Any]:
    encoder = AgUiEncoder(thread_id="ins_1", run_id="trn_1")
    events = encoder.begin()
    for chunk in given_chunks:
        events += encoder.encode(chunk)
    return events + encoder.end(outcome, "It broke." if outcome == "error" else None)


def recorded_chunks(name: str) -> list[Chunk]:
    """The chunks of one recording, those of all its turns after each other."""
    frames = [frame for frame in frames_of(name, "in") if frame["type"] == "cf_agent_use_chat_response"]
    return [frame["$body"] for frame in frames if "$body" in frame]


def kinds(events: list[Any]) -> list[str]:
    return [event["type"] for event in events]


def test_a_turn_with_a_thought_a_call_and_a_text() -> None:
    events = encoded(
        [
            chunks.start("m1"),
            chunks.start_step(),
            chunks.reasoning_start("r1"),
            chunks.reasoning_delta("r1", "Look it up."),
            chunks.reasoning_end("r1"),
            chunks.tool_input_start("c1", "search"),
            chunks.tool_input_delta("c1", '{"q":'),
            chunks.tool_input_delta("c1", '"tea"}'),
            chunks.tool_input_available("c1", "search", {"q": "tea"}),
            chunks.tool_output_available("c1", {"hits": 2}),
            chunks.finish_step(),
            chunks.start_step(),
            chunks.text_start("t1"),
            chunks.text_delta("t1", ""),
            chunks.text_delta("t1", "Two."),
            chunks.text_end("t1"),
            chunks.file("https://x.example/a.png", "image/png"),
            chunks.finish_step(),
            chunks.finish("stop"),
        ]
    )
    assert kinds(events) == [
        *("RUN_STARTED", "STEP_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"),
        *("REASONING_MESSAGE_END", "REASONING_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS"),
        *("TOOL_CALL_END", "TOOL_CALL_RESULT", "STEP_FINISHED", "STEP_STARTED", "TEXT_MESSAGE_START"),
        *("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "CUSTOM", "STEP_FINISHED", "RUN_FINISHED"),
    ]
    assert [event["delta"] for event in events if event["type"] == "TOOL_CALL_ARGS"] == ['{"q":', '"tea"}']
    assert next(event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT") == '{"hits":2}'
    assert events[-1]["outcome"] == {"type": "success"}
    assert wrong_events([events]) == []


def test_open_questions_are_an_interrupt_and_open_calls_of_clients_are_pending() -> None:
    call = chunks.tool_input_available("c1", "refund", {"order": "A-1"})
    asked = [call, chunks.tool_approval_request("p1", "c1", {"title": "Refund?"})]
    events = encoded(asked)
    outcome = events[-1]["outcome"]
    (interrupt,) = outcome["interrupts"]
    assert (outcome["type"], interrupt["id"], interrupt["toolCallId"]) == ("interrupt", "p1", "c1")
    assert interrupt["responseSchema"]["required"] == ["approved"]
    answered = encoded([*asked, chunks.tool_output_denied("c1")])
    assert answered[-1]["outcome"] == {"type": "success"}
    client = encoded([call])
    assert client[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    stopped = encoded([chunks.text_delta("t1", "He")], "aborted")
    assert stopped[-1]["outcome"] == {"type": "cancelled"}
    assert kinds(stopped)[-2] == "TEXT_MESSAGE_END"
    broken = encoded([], "error")
    assert broken[-1] == {"type": "RUN_ERROR", "message": "It broke.", "code": "turn_failed"}
    assert wrong_events([events, answered, client, stopped, broken]) == []


def test_a_call_that_begins_anew_is_ended_first() -> None:
    again = [chunks.tool_input_start("c1", "add"), chunks.tool_input_delta("c1", '{"a":'), *CALL]
    events = encoded(again)
    assert kinds(events)[1:-1] == [
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
    ]
    assert wrong_events([events]) == []


def test_what_was_recorded_of_real_turns_is_valid() -> None:
    recorded = [encoded(recorded_chunks(name)) for name in NAMES]
    assert sum("TEXT_MESSAGE_CONTENT" in kinds(events) for events in recorded) > 5
    assert wrong_events(recorded) == []


@settings(max_examples=examples(200), deadline=None)
@example(given_chunks=[CALL[0], CALL[0]], outcome="completed")
@given(given_chunks=chunk_lists, outcome=st.sampled_from(["completed", "aborted", "error"]))
def test_any_chunks_in_any_order_are_opened_before_they_go_on_and_closed_before_the_end(
    given_chunks: list[Chunk], outcome: str
) -> None:
    events = encoded(given_chunks, outcome)
    assert kinds(events)[0] == "RUN_STARTED"
    assert [kind for kind in kinds(events) if kind.startswith("RUN_")][1:] == [kinds(events)[-1]]
    messages: set[str] = set()
    calls: set[str] = set()
    steps: set[str] = set()
    for event in events:
        match event["type"]:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                assert event["messageId"] not in messages
                messages.add(event["messageId"])
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                assert event["messageId"] in messages
                assert event["delta"]
            case "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END":
                messages.remove(event["messageId"])
            case "TOOL_CALL_START":
                assert event["toolCallId"] not in calls
                calls.add(event["toolCallId"])
            case "TOOL_CALL_ARGS":
                assert event["toolCallId"] in calls
            case "TOOL_CALL_END":
                calls.remove(event["toolCallId"])
            case "STEP_STARTED":
                assert not steps
                steps.add(event["stepName"])
            case "STEP_FINISHED":
                steps.remove(event["stepName"])
    assert not messages | calls | steps


def test_each_event_has_a_kind_for_a_row() -> None:
    events = encoded([chunks.text_delta("t1", "a"), chunks.reasoning_delta("r1", "b")])
    assert {row_kind(kind) for kind in kinds(events)} == {"event", "text", "thinking"}
    assert set(KINDS.values()) == {"text", "tool-call-start", "tool-call-args", "tool-call-end", "thinking"}
