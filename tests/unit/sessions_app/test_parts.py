"""States of a tool part, and answers and decisions applied to it."""

import copy
from itertools import product
from typing import Any, cast

import pytest

from sessions_app.core.messages import call_texts
from sessions_app.core.messages.parts import (
    Approval,
    Result,
    apply_approval,
    apply_result,
    decide_part,
    input_object,
    is_settled,
    part_problem,
    pending_calls,
    settle_part,
    tool_name,
)
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import MOVES, SETTLED, ToolState


def call(state: str, call_id: str = "c1", **fields: Any) -> Part:
    return cast(
        "Part", {"type": "tool-weather", "toolCallId": call_id, "state": state, "input": {"city": "Oslo"}, **fields}
    )


def message(*parts: Part) -> Message:
    return {"id": "a1", "role": "assistant", "parts": list(parts)}


def test_settled_states_allow_no_move() -> None:
    assert all(not MOVES[state] for state in SETTLED)
    assert set(MOVES) == set(ToolState)


@pytest.mark.parametrize(("state", "result"), list(product(ToolState, [Result(output=1), Result(is_error=True)])))
def test_a_result_moves_only_along_the_table(state: ToolState, result: Result) -> None:
    part = call(state)
    moved = settle_part(part, result)
    assert moved is part or ToolState(moved["state"]) in MOVES[state]


@pytest.mark.parametrize(("state", "approved"), list(product(ToolState, [True, False])))
def test_a_decision_moves_only_along_the_table(state: ToolState, approved: bool) -> None:
    part = call(state)
    moved = decide_part(part, Approval(approved=approved))
    assert moved is part or ToolState(moved["state"]) in MOVES[state]


@pytest.mark.parametrize("state", ["input-available", "approval-requested", "approval-responded"])
def test_a_result_settles_every_open_call(state: str) -> None:
    settled = settle_part(call(state), Result(output={"temp": 3}))
    assert settled == call("output-available", output={"temp": 3}, preliminary=False)


def test_a_result_waits_for_the_input() -> None:
    part = call("input-streaming")
    assert settle_part(part, Result(output=1)) is part


def test_an_error_result_has_a_text() -> None:
    failed = settle_part(call("input-available"), Result(is_error=True, error_text="no network"))
    assert failed == call("output-error", errorText="no network")
    assert settle_part(call("input-available"), Result(is_error=True))["errorText"] == call_texts.DENIED


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_is_first_write_wins_returns_the_same_reference_for_a_settled_part(state: str) -> None:
    part = call(state, output="first")
    assert settle_part(part, Result(output="second")) is part
    assert decide_part(part, Approval(approved=True)) is part


def test_an_output_settles_a_part_in_any_state() -> None:
    part = call("input-available", output=None)
    assert is_settled(part)
    assert settle_part(part, Result(output=1)) is part


def test_approval_keeps_the_fields_of_its_request() -> None:
    asked = call("approval-requested", approval={"id": "ap1", "descriptor": {"summary": "x"}})
    decided = decide_part(asked, Approval(approved=True))
    assert decided["state"] == "approval-responded"
    assert decided["approval"] == {"id": "ap1", "descriptor": {"summary": "x"}, "approved": True}


def test_denial_settles_the_call_with_its_reason() -> None:
    asked = call("approval-requested", approval={"id": "ap1"})
    denied = decide_part(asked, Approval(approved=False, reason="too dear"))
    assert denied["state"] == "output-denied"
    assert denied["approval"] == {"id": "ap1", "approved": False, "reason": "too dear"}


def test_synthesizes_an_approval_id_when_an_older_transcript_is_missing_one() -> None:
    assert decide_part(call("approval-requested"), Approval(approved=True))["approval"]["id"] == "c1"
    assert decide_part(call("input-available"), Approval(approved=False))["approval"]["id"] == "c1"


def test_a_decided_call_is_not_decided_again() -> None:
    part = call("approval-responded", approval={"id": "ap1", "approved": True})
    assert decide_part(part, Approval(approved=False)) is part


def test_an_approved_call_keeps_its_approval_when_it_settles() -> None:
    part = call("approval-responded", approval={"id": "ap1", "approved": True})
    assert settle_part(part, Result(output=1))["approval"] == {"id": "ap1", "approved": True}


def test_apply_result_finds_the_call_and_leaves_the_argument_alone() -> None:
    before = message({"type": "text", "text": "hm"}, call("input-available"), call("input-available", "c2"))
    frozen = copy.deepcopy(before)
    after = apply_result(before, "c2", Result(output=7))
    assert before == frozen
    assert [part.get("state") for part in after["parts"]] == [None, "input-available", "output-available"]
    assert after["parts"][1] is before["parts"][1]


def test_an_unknown_call_changes_nothing() -> None:
    before = message(call("input-available"))
    assert apply_result(before, "other", Result(output=7)) is before
    assert apply_approval(before, "other", Approval(approved=True)) is before


def test_a_data_part_with_a_call_id_is_no_call() -> None:
    before = message({"type": "data-x", "toolCallId": "c1", "state": "input-available"})
    assert apply_result(before, "c1", Result(output=7)) is before


def test_approval_of_one_call_leaves_its_siblings() -> None:
    before = message(call("approval-requested"), call("approval-requested", "c2"))
    after = apply_approval(before, "c1", Approval(approved=True))
    assert pending_calls(after) == ["c1", "c2"]
    assert [part["state"] for part in after["parts"]] == ["approval-responded", "approval-requested"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", {}),
        ("{broken", {}),
        ("", {}),
        (None, {}),
        ([1], {}),
        (7, {}),
        (True, {}),
        ("[" * 100_000, {}),
    ],
)
def test_an_input_becomes_an_object(value: object, expected: dict[str, Any]) -> None:
    assert input_object(value) == expected


def test_a_dynamic_tool_has_its_name_in_a_field() -> None:
    assert tool_name({"type": "dynamic-tool", "toolName": "search"}) == "search"
    assert tool_name({"type": "tool-weather"}) == "weather"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "\0 \ud800"},
        {"type": "reasoning", "text": ""},
        {"type": "step-start"},
        {"type": "file", "mediaType": "image/png", "url": "/x"},
        {"type": "source-url", "sourceId": "1", "url": "u"},
        {"type": "source-document", "sourceId": "1", "mediaType": "m", "title": "t"},
        {"type": "data-chart", "data": None},
        call("input-streaming"),
        {"type": "dynamic-tool", "toolName": "t", "toolCallId": "c", "state": "output-denied"},
    ],
)
def test_known_parts_are_accepted(part: dict[str, Any]) -> None:
    assert part_problem(part) == ""


@pytest.mark.parametrize(
    "part",
    [
        None,
        "text",
        [],
        {},
        {"type": 3},
        {"type": "unknown"},
        {"type": "tool-"},
        {"type": "data-"},
        {"type": "text"},
        {"type": "text", "text": 3},
        {"type": "file", "url": "x"},
        {"type": "tool-x", "toolCallId": "c"},
        {"type": "tool-x", "toolCallId": 3, "state": "input-available"},
        {"type": "tool-x", "toolCallId": "c", "state": "done"},
        {"type": "tool-x", "toolCallId": "c", "state": ["input-available"]},
        {"type": "dynamic-tool", "toolCallId": "c", "state": "input-available"},
    ],
)
def test_other_parts_are_refused_with_a_reason(part: object) -> None:
    assert part_problem(part)
