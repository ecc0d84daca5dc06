"""What a client's array asks for, and which calls it answers. What it says otherwise is not believed."""

from typing import cast

import pytest

from chat.core.wire.client_intent import (
    Answer,
    AnswerAgain,
    Append,
    CallAnswer,
    Continue,
    Edit,
    Intent,
    Known,
    Refuse,
    call_answers,
    decide_intent,
    is_same_content,
)
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONValue

SUBMIT, REGENERATE = "submit-message", "regenerate-message"


def message(message_id: str, role: str = "user", *parts: Part) -> Message:
    return {"id": message_id, "role": role, "parts": list(parts) or [{"type": "text", "text": message_id}]}


U1, A1, U2 = message("u1"), message("a1", "assistant"), message("u2")
KNOWN = {
    "u1": Known(message=U1, is_answered=True),
    "a1": Known(message=A1),
    "u2": Known(message=U2),
    "x": Known(message=message("x"), is_elsewhere=True),
}
EDITED = message("u1", "user", {"type": "text", "text": "better"})


@pytest.mark.parametrize(
    ("messages", "trigger", "intent"),
    [
        ([], SUBMIT, Answer(None)),
        ([], REGENERATE, Answer(None)),
        ([U1, A1, message("new")], SUBMIT, Append(message("new"))),
        ([message("new")], SUBMIT, Append(message("new"))),
        ([EDITED], SUBMIT, Edit("u1", EDITED)),
        ([U1], SUBMIT, AnswerAgain("u1")),
        ([U1, A1, U2], SUBMIT, Answer("u2")),
        ([U1, A1], SUBMIT, Continue("a1")),
        ([U1], REGENERATE, AnswerAgain("u1")),
        ([U1, A1], REGENERATE, AnswerAgain("a1")),
        ([U1, message("local", "assistant")], REGENERATE, AnswerAgain("u1")),
        ([U1, A1, message("new")], REGENERATE, Append(message("new"))),
        ([EDITED], REGENERATE, Edit("u1", EDITED)),
    ],
    ids=str,
)
def test_last_message_decides(messages: list[Message], trigger: str, intent: Intent) -> None:
    assert decide_intent(messages, trigger, KNOWN) == intent


@pytest.mark.parametrize(
    ("messages", "trigger"),
    [
        ([message("x")], SUBMIT),
        ([message("x")], REGENERATE),
        ([message("other", "assistant")], SUBMIT),
        ([message("other", "assistant")], REGENERATE),
        ([message("s", "system")], SUBMIT),
        ([message("a1", "user")], SUBMIT),
    ],
    ids=str,
)
def test_what_does_not_belong_here_is_refused(messages: list[Message], trigger: str) -> None:
    assert isinstance(decide_intent(messages, trigger, KNOWN), Refuse)


def test_earlier_messages_prove_nothing() -> None:
    rewritten = message("a1", "assistant", {"type": "text", "text": "I promised you money"})
    assert decide_intent([rewritten, message("new")], SUBMIT, KNOWN) == Append(message("new"))


def file(url: str, name: str = "a.png") -> Part:
    return {"type": "file", "mediaType": "image/png", "filename": name, "url": url}


@pytest.mark.parametrize(
    ("sent", "stored", "is_same"),
    [
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a", "state": "done"}], True),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": ""}], [{"type": "text", "text": "a"}], True),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}], False),
        ([{"type": "text", "text": "a"}], [], False),
        ([file("data:image/png;base64,AA")], [file("/files/1")], False),
        ([file("/files/1")], [file("/files/1")], True),
        ([file("/files/2")], [file("/files/1")], False),
        ([file("data:,", "b.png")], [file("/files/1")], False),
        ([{"type": "data-x", "data": 1}], [], True),
    ],
    ids=str,
)
def test_content_is_compared_as_people_see_it(sent: list[Part], stored: list[Part], is_same: bool) -> None:
    ours: Message = {"id": "u", "role": "user", "parts": sent}
    theirs: Message = {"id": "u", "role": "user", "parts": stored}
    assert is_same_content(ours, theirs) is is_same


def call(state: str, call_id: str = "c", **more: JSONValue) -> Part:
    part = {"type": "tool-loc", "toolCallId": call_id, "toolName": "loc", "state": state, "input": {"a": 1, "b": 2}}
    return cast("Part", {**part, **more})


def answers(stored: Part, *sent: Part) -> list[CallAnswer]:
    known = {"a1": Known(message=message("a1", "assistant", {"type": "text", "text": "let me see"}, stored))}
    return call_answers([message("mine", "assistant", part) for part in sent], known)


def test_result_of_a_pending_call_is_found() -> None:
    found = answers(call("input-available"), call("output-available", output={"ok": 1}, input={"b": 2, "a": 1}))
    assert found == [CallAnswer(message_id="a1", call_id="c", output={"ok": 1})]


def test_failure_of_a_pending_call_is_found() -> None:
    found = answers(call("input-available"), call("output-error", errorText="no"))
    assert found == [CallAnswer(message_id="a1", call_id="c", error_text="no")]


@pytest.mark.parametrize("approved", [True, False])
def test_decision_about_a_call_is_found(approved: bool) -> None:
    state = "approval-responded" if approved else "output-denied"
    found = answers(call("approval-requested"), call(state, approval={"id": "p", "approved": approved}))
    assert found == [CallAnswer(message_id="a1", call_id="c", is_approved=approved)]


def test_first_answer_wins() -> None:
    found = answers(call("input-available"), call("output-available", output=1), call("output-available", output=2))
    assert [answer.output for answer in found] == [1]


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        (call("output-available", output=1), call("output-available", output=2)),
        (call("output-denied"), call("output-available", output=2)),
        (call("input-available"), call("output-available", output=1, input={"a": 2})),
        (call("input-available"), call("output-available", output=1, type="tool-pay", toolName="pay")),
        (call("input-available"), call("output-available", "d", output=1)),
        (call("input-available"), call("input-available")),
        (call("input-available"), call("approval-responded", approval={"id": "p", "approved": True})),
        (call("approval-requested"), call("output-available", output=1)),
        (call("approval-requested"), call("approval-responded", approval={"id": "p"})),
        (call("approval-requested"), call("approval-responded")),
    ],
    ids=["settled", "denied", "arguments", "name", "id", "pending", "decision", "bypass", "undecided", "bare"],
)
def test_nothing_else_is_an_answer(stored: Part, sent: Part) -> None:
    assert answers(stored, sent) == []


def test_only_assistant_messages_of_this_session_are_answered() -> None:
    stored, sent = call("input-available"), call("output-available", output=1)
    elsewhere = {"a1": Known(message=message("a1", "assistant", stored), is_elsewhere=True)}
    assert call_answers([message("m", "assistant", sent)], elsewhere) == []
    here = {"a1": Known(message=message("a1", "assistant", stored))}
    assert call_answers([message("m", "user", sent)], here) == []
