"""What waits for a decision, over all conversations; and decisions that change the arguments."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import AgentInstance
from sessions_app.core.messages.shapes import Part
from sessions_app.messages import selectors
from tests.db.chat.conftest import ApiClient, make_turn, say
from tests.db.chat.http.api.questions import ARGUMENTS, QUESTION, ask, pay
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.services import pause_call
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import ApprovalEvent, ToolCallRecord

Make = Callable[..., AgentInstance]


def decide(client: ApiClient, instance: AgentInstance, call_id: str, **body: Any) -> Any:
    return client.send("POST", f"/instances/{instance.id}/calls/{call_id}/approval", body)


def part_of(instance: AgentInstance, call_id: str) -> Part:
    assert instance.session_id is not None
    stored = selectors.get_message(instance.session_id, "a1")
    assert stored is not None
    return next(part for part in stored.parts if part.get("toolCallId") == call_id)


def test_all_conversations_are_listed_newest_first(
    as_alice: ApiClient, alice: User, conversation: AgentInstance, make_instance: Make
) -> None:
    other = make_instance(alice, "other", title="Other")
    say(other, "q", "a")
    first, second = ask(conversation, "c1"), ask(other, "c2", question=None)
    page = as_alice.get("/approvals").json()
    assert (page["count"], page["next_cursor"]) == (2, None)
    newest, oldest = page["items"]
    assert oldest == {
        "call_id": "c1",
        "instance_id": conversation.id,
        "title": "A talk",
        "agent": "assistant",
        "message_id": "a1",
        "tool": "pay",
        "tool_title": "Payment",
        "sentence": "Pay 5 for A-1?",
        "input": ARGUMENTS,
        "input_schema": pay.input_schema,
        "may_edit": ["amount"],
        "risk": "",
        "because": [],
        "key": "",
        "offers": [],
        "rule": "",
        "choices": [],
        "requested_at": oldest["requested_at"],
        "expires_at": None,
    }
    assert (newest["call_id"], newest["title"], newest["message_id"]) == ("c2", "Other", "a")
    plain = (newest["tool_title"], newest["sentence"], newest["may_edit"], newest["input_schema"])
    assert plain == ("Pay", "", False, None)
    assert first.pk < second.pk


def test_only_what_can_be_decided_is_listed(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, conversation: AgentInstance, make_instance: Make
) -> None:
    now = timezone.now()
    ask(conversation, "late", expires_at=now - timedelta(seconds=1))
    ask(conversation, "soon", expires_at=now + timedelta(hours=1))
    for status in ("waiting", "approved", "running", "succeeded", "failed", "denied", "early"):
        ask(conversation, status, status=status)
    his = make_instance(bob, "his")
    say(his, "q", "a")
    ask(his, "his")
    assert [item["call_id"] for item in as_alice.get("/approvals").json()["items"]] == ["soon"]
    assert [item["call_id"] for item in as_bob.get("/approvals").json()["items"]] == ["his"]
    assert decide(as_alice, conversation, "soon", approved=False).json()["accepted"]
    assert as_alice.get("/approvals").json() == {"items": [], "count": 0, "next_cursor": None}


def test_pages_follow_each_other_at_a_fixed_cost(as_alice: ApiClient, conversation: AgentInstance) -> None:
    def read(path: str) -> tuple[JSONObject, int]:
        with CaptureQueriesContext(connection) as queries:
            page = as_alice.get(path).json()
        return page, len(queries)

    ask(conversation, "c0")
    _, few = read("/approvals")
    for number in range(1, 200):
        ask(conversation, f"c{number}")
    found: list[str] = []
    cursor: str | None = ""
    for _ in range(3):
        page, cost = read(f"/approvals?limit=80&cursor={cursor}")
        found += [item["call_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        assert (page["count"], cost) == (200, few)
    assert (found, cursor) == ([f"c{number}" for number in reversed(range(200))], None)
    assert few == 6  # the session, the user; questions, conversations, answers, how many


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 30, "½"])
def test_a_cursor_is_one_of_ours(as_alice: ApiClient, cursor: str) -> None:
    assert as_alice.get(f"/approvals?cursor={cursor}").status_code == 422


def test_a_stranger_is_refused(as_nobody: ApiClient) -> None:
    assert as_nobody.get("/approvals").status_code == 401


def test_the_open_calls_of_a_conversation_have_the_question(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ask(conversation, "c1")
    (call,) = as_alice.get(f"/instances/{conversation.id}/calls").json()
    shown = (call["tool_title"], call["sentence"], call["may_edit"], call["input_schema"])
    assert shown == ("Payment", "Pay 5 for A-1?", ["amount"], pay.input_schema)


def test_a_decision_may_change_the_arguments(as_alice: ApiClient, alice: User, conversation: AgentInstance) -> None:
    ask(conversation, "c1")
    edited = {**ARGUMENTS, "amount": 4}
    reply = decide(as_alice, conversation, "c1", approved=True, input=ARGUMENTS, edited_input=edited, reason="less")
    assert reply.json()["accepted"], reply.content
    row = ToolCallRecord.objects.get(call_id="c1")
    assert (row.status, row.input, row.input_to_run) == ("approved", ARGUMENTS, edited)
    part = part_of(conversation, "c1")
    assert (part["state"], part["input"]) == ("approval-responded", edited)
    assert part["approval"] == {
        "id": "apr-c1",
        "approved": True,
        "edited": True,
        "originalInput": ARGUMENTS,
    }
    event = as_alice.get(f"/instances/{conversation.id}/calls/c1/events").json()[-1]
    shown = (event["kind"], event["actor_id"], event["reason"], event["edited_input"])
    assert shown == ("approved", alice.pk, "less", edited)


def test_the_same_arguments_are_no_change(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ask(conversation, "c1", question=None)
    assert decide(as_alice, conversation, "c1", approved=True, edited_input=ARGUMENTS).json()["accepted"]
    assert ToolCallRecord.objects.get(call_id="c1").edited_input is None
    assert "edited" not in part_of(conversation, "c1")["approval"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"approved": True, "edited_input": {**ARGUMENTS, "order": "B"}}, 422, "edit_invalid"),
        ({"approved": True, "edited_input": {"order": "A-1"}}, 422, "edit_invalid"),
        ({"approved": True, "edited_input": {**ARGUMENTS, "amount": "much"}}, 422, "edit_invalid"),
        ({"approved": False, "edited_input": {**ARGUMENTS, "amount": 4}}, 422, "input_invalid"),
        ({"approved": True, "edited_input": {**ARGUMENTS, "amount": 4}, "input": {"order": "B"}}, 409, "call_changed"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    as_alice: ApiClient, conversation: AgentInstance, body: JSONObject, status: int, code: str
) -> None:
    ask(conversation, "c1")
    reply = decide(as_alice, conversation, "c1", **body)
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.content
    assert part_of(conversation, "c1")["state"] == "approval-requested"
    assert ToolCallRecord.objects.get(call_id="c1").status == "asked"
    assert [event.kind for event in ApprovalEvent.objects.all()] == ["asked"]


def test_a_change_that_comes_too_late_is_a_conflict(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ask(conversation, "c1")
    ask(conversation, "c2", expires_at=timezone.now() - timedelta(seconds=1))
    assert decide(as_alice, conversation, "c1", approved=True, continues=False).json()["accepted"]
    for call_id in ("c1", "c2"):
        reply = decide(as_alice, conversation, call_id, approved=True, edited_input={**ARGUMENTS, "amount": 4})
        assert (reply.status_code, reply.json()["code"]) == (409, "call_decided"), reply.content
    assert part_of(conversation, "c1")["input"] == ARGUMENTS


def test_a_result_of_a_client_is_no_question(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ask(conversation, "c1", status="waiting")
    reply = decide(as_alice, conversation, "c1", approved=True, edited_input={**ARGUMENTS, "amount": 4})
    assert reply.status_code == 409


def test_a_running_turn_shows_the_change_at_its_end(as_alice: ApiClient, conversation: AgentInstance) -> None:
    turn = make_turn(conversation, status="running", assistant_id="a2")
    pause = ToolPause(status=CallStatus.ASKED, approval_id="apr-c3", question=QUESTION)
    call = ToolCall(call_id="c3", tool_name="pay", input=ARGUMENTS)
    pause_call(call, pause, turn_id=turn.pk, scope=conversation.pk, owner_id=conversation.owner_id)
    edited = {**ARGUMENTS, "amount": 4}
    assert decide(as_alice, conversation, "c3", approved=True, edited_input=edited).json()["accepted"]
    assert ToolCallRecord.objects.get(call_id="c3").input_to_run == edited
