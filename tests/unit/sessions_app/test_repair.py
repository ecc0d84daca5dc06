"""Transcripts before a turn: every call has its result, every open input is an object."""

from typing import Any, cast

import pytest

from sessions_app.core.messages import call_texts
from sessions_app.core.messages.repair import repair_messages
from sessions_app.core.messages.shapes import Message, Part

NEXT: Message = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "go on"}]}


def call(state: str, **fields: Any) -> Part:
    return cast("Part", {"type": "tool-t", "toolCallId": "c1", "state": state, "input": {}, **fields})


def answer(*parts: Part) -> Message:
    return {"id": "a1", "role": "assistant", "parts": list(parts)}


def repaired_part(part: Part, *later: Message, client_tools: tuple[str, ...] = ()) -> Any:
    changed = repair_messages([answer(part), *later], client_tools=client_tools)
    return changed[0]["parts"][0] if changed else part


def test_a_clean_transcript_needs_nothing() -> None:
    settled = [call(state) for state in ("output-available", "output-error", "output-denied")]
    assert repair_messages([answer(*settled), NEXT]) == []
    assert repair_messages([]) == []


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested", "unheard-of"])
def test_repairs_a_persisted_orphan_tool_call_before_the_next_turn(state: str) -> None:
    part = repaired_part(call(state), NEXT)
    assert part["state"] == "output-error"
    assert part["errorText"] == call_texts.INTERRUPTED


def test_a_server_call_cut_in_the_last_message_is_interrupted_too() -> None:
    assert repaired_part(call("input-available"))["errorText"] == call_texts.INTERRUPTED
    assert repaired_part(call("input-streaming"), client_tools=("t",))["errorText"] == call_texts.INTERRUPTED


def test_a_client_call_in_the_last_message_may_still_be_answered() -> None:
    assert repaired_part(call("input-available"), client_tools=("t",))["state"] == "input-available"
    assert repaired_part(call("input-available"), NEXT, client_tools=("t",))["state"] == "output-error"


def test_an_approved_call_that_never_ran_fails_when_the_conversation_went_on() -> None:
    approved = call("approval-responded", approval={"id": "p", "approved": True})
    assert repaired_part(approved, NEXT)["errorText"] == call_texts.NOT_RUN
    assert repaired_part(approved)["state"] == "approval-responded"


def test_a_call_that_waits_for_a_person_is_left_alone_wherever_it_stands() -> None:
    asked, approved = call("approval-requested"), call("approval-responded", approval={"id": "p", "approved": True})
    for part in (asked, approved):
        assert repair_messages([answer(part), NEXT], waiting={"c1"}) == []
        assert repair_messages([answer(part), NEXT], waiting={"c2"}) != []
    [cut] = repair_messages([answer(call("input-available")), NEXT], waiting={"c1"})
    assert cut["parts"][0]["errorText"] == call_texts.INTERRUPTED


def test_preserves_a_denied_tool_approval_instead_of_flipping_it_to_errored() -> None:
    denied = call("approval-responded", approval={"id": "p", "approved": False})
    assert repaired_part(denied, NEXT) == {**denied, "state": "output-denied"}
    assert repaired_part(denied)["state"] == "output-denied"


@pytest.mark.parametrize(("given", "expected"), [('{"a":1}', {"a": 1}), ("x", {}), (None, {}), ([1], {})])
def test_an_input_that_is_no_object_becomes_one(given: object, expected: dict[str, Any]) -> None:
    waiting = call("approval-requested", approval={"id": "p"})
    waiting["input"] = given
    assert repaired_part(waiting)["input"] == expected
    assert repaired_part(waiting, NEXT)["input"] == expected


def test_settled_parts_are_never_touched() -> None:
    odd = [call("output-available", input="not an object"), call("input-available", output=1), call("x", result=2)]
    assert repair_messages([answer(*odd), NEXT]) == []


def test_only_changed_messages_come_back_and_arguments_stay() -> None:
    fine = answer({"type": "text", "text": "ok"})
    broken: Message = {**answer(call("input-available")), "id": "a2"}
    changed = repair_messages([fine, NEXT, broken, NEXT])
    assert [message["id"] for message in changed] == ["a2"]
    assert broken["parts"][0]["state"] == "input-available"


def test_repair_is_idempotent() -> None:
    history = [answer(call("input-available"), call("approval-requested")), NEXT]
    again = [*repair_messages(history), NEXT]
    assert repair_messages(again) == []


def test_parts_of_users_are_left_alone() -> None:
    assert repair_messages([{"id": "u1", "role": "user", "parts": [call("input-available")]}, NEXT]) == []
