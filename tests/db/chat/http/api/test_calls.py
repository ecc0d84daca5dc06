"""Calls over the API: what is open, decided, answered, and what is reported about it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.models import AgentInstance, Turn
from sessions_app.core.messages.shapes import Part
from sessions_app.messages import selectors
from sessions_app.messages.services import update_message
from tests.db.chat.conftest import ApiClient, make_turn, say
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.services import pause_call
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import ToolCallRecord

Ask = Callable[..., ToolCallRecord]


@pytest.fixture
def ask(alice: User, conversation: AgentInstance) -> Ask:
    """Put an open call into the conversation's answer."""
    turn = Turn.objects.get(assistant_id="a1")

    def put(call_id: str, *, is_question: bool = True, arguments: JSONObject | None = None) -> ToolCallRecord:
        arguments = arguments or {"amount": 5}
        part: Part = {"type": "tool-pay", "toolCallId": call_id, "state": "input-available", "input": arguments}
        if is_question:
            part |= {"state": "approval-requested", "approval": {"id": f"apr-{call_id}"}}
        assert conversation.session_id is not None
        update_message(conversation.session_id, "a1", lambda m: {**m, "parts": [*m["parts"], part]})
        pause = ToolPause(
            status=CallStatus.ASKED if is_question else CallStatus.WAITING,
            approval_id=f"apr-{call_id}" if is_question else "",
        )
        call = ToolCall(call_id=call_id, tool_name="pay", input=arguments)
        return pause_call(call, pause, turn_id=turn.pk, scope=conversation.pk, owner_id=alice.pk)

    return put


def decide(client: ApiClient, instance: AgentInstance, call_id: str, **body: Any) -> Any:
    return client.send("POST", f"/instances/{instance.id}/calls/{call_id}/approval", body)


def result(client: ApiClient, instance: AgentInstance, call_id: str, **body: Any) -> Any:
    return client.send("POST", f"/instances/{instance.id}/calls/{call_id}/result", body)


def part_of(instance: AgentInstance, call_id: str) -> Part:
    assert instance.session_id is not None
    stored = selectors.get_message(instance.session_id, "a1")
    assert stored is not None
    return next(part for part in stored.parts if part.get("toolCallId") == call_id)


def test_what_is_open(as_alice: ApiClient, conversation: AgentInstance, ask: Ask) -> None:
    ask("c1")
    ask("c2", is_question=False)
    listed = as_alice.get(f"/instances/{conversation.id}/calls").json()
    assert [(call["call_id"], call["needs"], call["input"], call["message_id"]) for call in listed] == [
        ("c1", "approval", {"amount": 5}, "a1"),
        ("c2", "result", {"amount": 5}, "a1"),
    ]
    decide(as_alice, conversation, "c1", approved=True)
    assert [call["call_id"] for call in as_alice.get(f"/instances/{conversation.id}/calls").json()] == ["c2"]


def test_an_approval_goes_on_and_is_written_down(
    as_alice: ApiClient, alice: User, conversation: AgentInstance, ask: Ask
) -> None:
    ask("c1")
    reply = decide(as_alice, conversation, "c1", approved=True, reason="cheap enough", input={"amount": 5})
    assert reply.status_code == 200, reply.content
    body = reply.json()
    assert body["accepted"]
    turn = Turn.objects.get(pk=body["turn_id"])
    assert (turn.trigger, turn.base_id) == ("continue", "a1")
    assert part_of(conversation, "c1")["state"] == "approval-responded"
    events = as_alice.get(f"/instances/{conversation.id}/calls/c1/events").json()
    assert [(e["kind"], e["actor_id"], e["via"], e["reason"]) for e in events] == [
        ("asked", None, "turn", ""),
        ("approved", alice.pk, "api", "cheap enough"),
    ]


def test_only_the_first_decision_counts(as_alice: ApiClient, conversation: AgentInstance, ask: Ask) -> None:
    ask("c1")
    assert decide(as_alice, conversation, "c1", approved=False, continues=False).json() == {
        "accepted": True,
        "turn_id": None,
        "not_continued": None,
        "rules": [],
        "settled": [],
    }
    assert decide(as_alice, conversation, "c1", approved=True).json()["accepted"] is False
    assert part_of(conversation, "c1")["state"] == "output-denied"


def test_other_arguments_are_a_conflict(as_alice: ApiClient, conversation: AgentInstance, ask: Ask) -> None:
    ask("c1")
    reply = decide(as_alice, conversation, "c1", approved=True, input={"amount": 6})
    assert (reply.status_code, reply.json()["code"]) == (409, "call_changed")
    assert part_of(conversation, "c1")["state"] == "approval-requested"


def test_a_clients_result(as_alice: ApiClient, conversation: AgentInstance, ask: Ask) -> None:
    ask("c1", is_question=False)
    assert result(as_alice, conversation, "c1", output={"place": "home"}).json()["accepted"]
    assert part_of(conversation, "c1")["output"] == {"place": "home"}


def test_a_failure_is_a_result(as_alice: ApiClient, conversation: AgentInstance, ask: Ask) -> None:
    ask("c1", is_question=False)
    assert result(as_alice, conversation, "c1", error_text="no signal", continues=False).json()["accepted"]
    assert part_of(conversation, "c1")["errorText"] == "no signal"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("nothing/approval", {"approved": True}, 404),
        ("nothing/result", {"output": 1}, 404),
        ("c1/approval", {}, 422),
        ("c1/approval", {"approved": "perhaps"}, 422),
        ("c1/approval", {"approved": True, "why": "typo"}, 422),
        ("c1/result", {"output": 1, "error_text": "both"}, 422),
    ],
)
def test_what_is_refused(
    as_alice: ApiClient, conversation: AgentInstance, ask: Ask, path: str, body: object, status: int
) -> None:
    ask("c1")
    reply = as_alice.send("POST", f"/instances/{conversation.id}/calls/{path}", body)
    assert reply.status_code == status, reply.content
    assert part_of(conversation, "c1")["state"] == "approval-requested"


def test_a_call_of_another_conversation_is_not_found_here(
    as_alice: ApiClient, alice: User, make_instance: Callable[..., AgentInstance], ask: Ask
) -> None:
    ask("c1")
    other = make_instance(alice, "other")
    say(other, "q", "a")
    assert decide(as_alice, other, "c1", approved=True).status_code == 404


def test_a_running_turn_keeps_the_answer_for_its_end(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    turn = make_turn(conversation, status="running", assistant_id="a2")
    call = ToolCall(call_id="c9", tool_name="locate", input={})
    pause_call(call, ToolPause(status=CallStatus.WAITING), turn_id=turn.pk, scope=conversation.pk, owner_id=alice.pk)
    assert result(as_alice, conversation, "c9", output="early").json() == {
        "accepted": True,
        "turn_id": None,
        "not_continued": None,
        "rules": [],
        "settled": [],
    }
    assert ToolCallRecord.objects.get(call_id="c9").output == "early"


def test_all_open_questions_are_decided_at_once_or_none_is(
    as_alice: ApiClient, conversation: AgentInstance, ask: Ask
) -> None:
    for call_id in ("c1", "c2", "c3"):
        ask(call_id)
    ask("client", is_question=False)  # no question: a client answers it
    before = Turn.objects.count()

    def decide_all(*decisions: Any) -> Any:
        return as_alice.send("POST", f"/instances/{conversation.id}/approvals", {"decisions": list(decisions)})

    def one(call_id: str, **more: Any) -> dict[str, Any]:
        return {"call_id": call_id, "approved": True, **more}

    for wrong in (
        [one("c1"), one("c2")],  # one is missing
        [one("c1"), one("c2"), one("c3"), one("c4")],
        [one("c1"), one("c2"), one("c2")],
    ):
        reply = decide_all(*wrong)
        assert (reply.status_code, reply.json()["code"]) == (409, "answers_incomplete")
        assert reply.json()["data"]["open"] == ["c1", "c2", "c3"]
    reply = decide_all(one("c1"), one("c2"), one("c3", input={"amount": 6}))  # other arguments than were shown
    assert (reply.status_code, reply.json()["code"]) == (409, "call_changed")
    assert {row.status for row in ToolCallRecord.objects.exclude(call_id="client")} == {CallStatus.ASKED}
    assert part_of(conversation, "c1")["state"] == "approval-requested"
    reply = decide_all(one("c1"), {"call_id": "c2", "approved": False, "reason": "too much"}, one("c3"))
    assert (reply.status_code, reply.json()["accepted"]) == (200, True)
    assert [part_of(conversation, call_id)["state"] for call_id in ("c1", "c2", "c3")] == [
        "approval-responded",
        "output-denied",
        "approval-responded",
    ]
    assert Turn.objects.count() == before  # the client's call is open
    assert result(as_alice, conversation, "client", output="done").json()["turn_id"]
    assert Turn.objects.count() == before + 1
    assert decide_all(one("c1")).status_code == 409
