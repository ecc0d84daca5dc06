"""The fold of tool calls: states, inputs, approvals, and the first write that wins."""

from typing import Any, cast

import pytest

from chat.core.wire import chunks
from chat.core.wire.accumulator import Accumulator, fold
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import Message, Part

START = chunks.tool_input_start("c", "add")
INPUT = chunks.tool_input_available("c", "add", {"a": 1})
REQUEST = chunks.tool_approval_request("p", "c")
RESULT = chunks.tool_output_available("c", 42)
FAILURE = chunks.tool_output_error("c", "boom")
DENIAL = chunks.tool_output_denied("c")
RESPONSE: Chunk = {"type": "tool-approval-response", "approvalId": "p", "approved": True, "reason": "fine"}


def call(*given: Chunk) -> Part:
    (part,) = fold(given)["parts"]
    return part


def test_call_goes_from_input_to_result() -> None:
    head = {"type": "tool-add", "toolCallId": "c", "toolName": "add"}
    assert call(START) == {**head, "state": "input-streaming"}
    assert call(START, INPUT) == {**head, "state": "input-available", "input": {"a": 1}}
    assert call(START, INPUT, RESULT) == {**head, "state": "output-available", "input": {"a": 1}, "output": 42}
    assert call(START, INPUT, FAILURE) == {**head, "state": "output-error", "input": {"a": 1}, "errorText": "boom"}


def test_a_result_stands_in_its_call_and_not_behind_what_came_since() -> None:
    stream = [
        *[chunks.text_delta("t", "one"), START, INPUT],
        *[chunks.text_start("u"), chunks.text_delta("u", "two"), RESULT],
    ]
    found = [(part["type"], part.get("text", part.get("output"))) for part in fold(stream)["parts"]]
    assert found == [("text", "one"), ("tool-add", 42), ("text", "two")]


def test_input_without_a_start_makes_the_call() -> None:
    assert call(INPUT)["state"] == "input-available"


def test_dynamic_call_names_its_tool_beside_the_type() -> None:
    part = call(chunks.tool_input_start("c", "add", dynamic=True))
    assert (part["type"], part["toolName"]) == ("dynamic-tool", "add")


def test_cut_call_keeps_what_was_written_of_its_input() -> None:
    written = (START, chunks.tool_input_delta("c", '{"a"'), chunks.tool_input_delta("c", ": 1}"))
    assert call(*written)["rawInput"] == '{"a": 1}'
    assert "rawInput" not in call(*written, INPUT)


def test_input_of_a_seed_that_was_cut_is_completed() -> None:
    seed = fold([START, chunks.tool_input_delta("c", '{"a"')])
    (part,) = fold([chunks.tool_input_delta("c", ": 1}"), REQUEST], seed)["parts"]
    assert part["input"] == {"a": 1}
    assert "rawInput" not in part


def test_explicit_partial_input_is_taken_over() -> None:
    assert call(START, {**chunks.tool_input_delta("c", "{"), "input": {"a": 0}})["input"] == {"a": 0}


def test_input_is_normalised_to_an_object() -> None:
    assert call(chunks.tool_input_available("c", "add", '{"a": 1}'))["input"] == {"a": 1}
    assert call(chunks.tool_input_available("c", "add", [1]))["input"] == {}


def test_input_error_keeps_what_the_model_wrote() -> None:
    part = call(START, chunks.tool_input_delta("c", '{"a'), chunks.tool_input_error("c", "add", '{"a', "cut"))
    assert (part["state"], part["input"], part["errorText"]) == ("output-error", '{"a', "cut")
    assert "rawInput" not in part


def test_input_error_without_input_falls_back_to_the_written_text() -> None:
    part = call(
        START, chunks.tool_input_delta("c", '{"a": 1}'), chunks.tool_input_error("c", "add", None, "not allowed")
    )
    assert part["input"] == {"a": 1}


def test_approval_request_and_response() -> None:
    asked = call(INPUT, REQUEST)
    assert (asked["state"], asked["approval"]) == ("approval-requested", {"id": "p"})
    answered = call(INPUT, REQUEST, RESPONSE)
    assert (answered["state"], answered["approval"]) == (
        "approval-responded",
        {"id": "p", "approved": True, "reason": "fine"},
    )


def test_approval_request_before_the_input_uses_what_was_written() -> None:
    assert call(START, chunks.tool_input_delta("c", '{"a": 1}'), REQUEST)["input"] == {"a": 1}


def test_approval_request_keeps_its_details() -> None:
    details = {"approvalDescriptor": {"d": 1}, "signature": "s", "reason": "why", "isAutomatic": False}
    assert call(INPUT, cast("chunks.Chunk", {**REQUEST, **details}))["approval"] == {
        "id": "p",
        "descriptor": {"d": 1},
        "signature": "s",
        "requestReason": "why",
        "isAutomatic": False,
    }


def test_approval_response_for_another_request_is_ignored() -> None:
    assert call(INPUT, REQUEST, {**RESPONSE, "approvalId": "q"})["state"] == "approval-requested"
    assert call(INPUT, RESPONSE)["state"] == "input-available"


def test_denial_states_that_it_was_not_approved() -> None:
    assert call(INPUT, REQUEST, DENIAL)["approval"] == {"id": "p", "approved": False}
    assert call(INPUT, DENIAL)["approval"] == {"id": "c", "approved": False}


def test_result_keeps_the_approval() -> None:
    part = call(INPUT, REQUEST, RESPONSE, RESULT)
    assert (part["state"], part["approval"]["approved"]) == ("output-available", True)


def test_final_result_replaces_the_preliminary_one() -> None:
    preliminary = chunks.tool_output_available("c", "half", preliminary=True)
    assert call(INPUT, preliminary)["preliminary"] is True
    part = call(INPUT, preliminary, RESULT)
    assert part["output"] == 42
    assert "preliminary" not in part


def test_failure_after_a_preliminary_result_leaves_no_output() -> None:
    part = call(INPUT, chunks.tool_output_available("c", "half", preliminary=True), FAILURE)
    assert part["errorText"] == "boom"
    assert not {"output", "preliminary"} & part.keys()


def test_details_of_the_provider_are_kept() -> None:
    metadata = {"p": {"k": 1}}
    part = call(
        {**START, "title": "Add", "providerExecuted": True, "providerMetadata": metadata},
        {**INPUT, "toolMetadata": {"t": 1}, "providerMetadata": {"q": {}}},
        {**RESULT, "providerMetadata": metadata, "providerExecuted": True},
    )
    assert (part["title"], part["providerExecuted"], part["toolMetadata"]) == ("Add", True, {"t": 1})
    assert part["callProviderMetadata"] == {**metadata, "q": {}}
    assert part["resultProviderMetadata"] == metadata


@pytest.mark.parametrize(
    "chunk",
    [chunks.tool_input_delta("x", "{"), REQUEST, RESPONSE, RESULT, FAILURE, DENIAL],
    ids=lambda chunk: chunk["type"],
)
def test_chunks_of_unknown_calls_are_ignored(chunk: Chunk) -> None:
    assert fold([chunk])["parts"] == []


@pytest.mark.parametrize(
    ("before", "late"),
    [
        ([START], START),
        ([INPUT], chunks.tool_input_delta("c", "{")),
        ([INPUT], chunks.tool_input_available("c", "add", {"a": 2})),
        ([INPUT, RESULT], INPUT),
        ([INPUT, REQUEST, RESPONSE], REQUEST),
        ([INPUT, REQUEST, RESPONSE], DENIAL),
        ([INPUT, RESULT], REQUEST),
        ([INPUT, FAILURE], DENIAL),
        ([INPUT, RESULT], chunks.tool_input_error("c", "add", {}, "late")),
    ],
    ids=str,
)
def test_first_write_wins(before: list[Chunk], late: Chunk) -> None:
    accumulator = Accumulator()
    for chunk in before:
        accumulator.apply(chunk)
    assert not accumulator.accepts(late)
    known = accumulator.message
    accumulator.apply(late)
    assert accumulator.message == known


def test_input_is_refreshed_while_approval_is_asked() -> None:
    part = call(INPUT, REQUEST, chunks.tool_input_available("c", "add", {"a": 2}))
    assert (part["state"], part["input"], part["approval"]) == ("approval-requested", {"a": 2}, {"id": "p"})


def test_open_calls_are_those_without_a_result() -> None:
    accumulator = Accumulator()
    given: list[Any] = [INPUT, chunks.tool_input_start("d", "add"), chunks.tool_input_available("e", "add", {})]
    for chunk in [*given, chunks.tool_output_available("e", 1), REQUEST]:
        accumulator.apply(chunk)
    assert accumulator.open_calls == {"c": "approval-requested", "d": "input-streaming"}


def test_calls_of_a_seed_are_known() -> None:
    seed = fold([chunks.start("m"), INPUT, chunks.data("w", 1, part_id="1")])
    folded = fold([RESULT, chunks.data("w", 2, part_id="1")], seed)
    assert [part.get("output", part.get("data")) for part in folded["parts"]] == [42, 2]


def test_seed_with_a_part_without_a_state_does_no_harm() -> None:
    odd = cast("list[Part]", [{"type": 3}, {}])
    seed: Message = {"id": "m", "role": "assistant", "parts": [{"type": "tool-add", "toolCallId": "c"}, *odd]}
    folded = fold([RESPONSE, INPUT, RESULT], seed)
    assert folded["parts"][0]["output"] == 42
