"""Flags of the list of conversations: calls that wait, a failure."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import AgentInstance, Turn
from sessions_app.messages.services import append_messages, create_session, select_leaf
from tests.db.chat.conftest import ApiClient, make_turn, say, text_message
from tools_app.calls.services import pause_call
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import ToolCallRecord

Make = Callable[..., AgentInstance]


def wait(turn: Turn, call_id: str, *, status: CallStatus = CallStatus.ASKED, **row: Any) -> None:
    """Leave a call of a turn open."""
    pause = ToolPause(status=status, approval_id=f"apr-{call_id}" if status is CallStatus.ASKED else "")
    call = ToolCall(call_id=call_id, tool_name="pay", input={})
    made = pause_call(call, pause, turn_id=turn.pk, scope=turn.instance_id, owner_id=turn.instance.owner_id)
    ToolCallRecord.objects.filter(pk=made.pk).update(**row)


def flags(client: ApiClient, instance: AgentInstance) -> tuple[int, bool]:
    """Both, as the list and the conversation itself have them."""
    detail = client.get(f"/instances/{instance.id}").json()
    listed = next(item for item in client.get("/instances").json()["items"] if item["id"] == instance.id)
    only_there = {"model", "model_notice"}  # they would cost the list a query for each row
    assert listed == {name: value for name, value in detail.items() if name not in only_there}
    return detail["waiting_count"], detail["has_failed"]


def test_open_calls_of_the_last_answer_are_counted(as_alice: ApiClient, conversation: AgentInstance) -> None:
    turn = Turn.objects.get(assistant_id="a1")
    assert flags(as_alice, conversation) == (0, False)
    wait(turn, "asked")
    wait(turn, "client", status=CallStatus.WAITING)
    wait(turn, "approved", status=CallStatus.ASKED)
    ToolCallRecord.objects.filter(call_id="approved").update(status="approved")
    wait(turn, "late", expires_at=timezone.now() - timedelta(seconds=1))
    wait(turn, "soon", expires_at=timezone.now() + timedelta(hours=1))
    assert flags(as_alice, conversation) == (3, False)


def test_a_running_turn_may_wait_already(as_alice: ApiClient, conversation: AgentInstance) -> None:
    wait(make_turn(conversation, status="running"), "c1")
    assert flags(as_alice, conversation) == (1, False)


def test_calls_of_another_branch_or_session_do_not_count(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    wait(Turn.objects.get(assistant_id="a1"), "c1")
    append_messages(conversation.session_id, [text_message("q2", "user")], after="q1")
    select_leaf(conversation.session_id, "q2")
    assert flags(as_alice, conversation)[0] == 0
    select_leaf(conversation.session_id, "a1")
    assert flags(as_alice, conversation)[0] == 1
    conversation.session = create_session(owner_id=conversation.owner_id, scope=conversation.pk)
    conversation.save(update_fields=["session"])
    assert flags(as_alice, conversation)[0] == 0


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_failure_at_the_end_is_shown_until_something_follows(
    as_alice: ApiClient, conversation: AgentInstance, status: str
) -> None:
    say(conversation, "q2", "a2", status=status, options={"leaf": "q2"})
    assert flags(as_alice, conversation) == (0, True)
    make_turn(conversation, status="pending")
    assert flags(as_alice, conversation) == (0, False)


def test_a_failure_without_an_answer_is_at_its_question(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    make_turn(conversation, status="failed", options={"leaf": "a1"})
    assert flags(as_alice, conversation) == (0, True)
    append_messages(conversation.session_id, [text_message("q2", "user")], after="q1")
    select_leaf(conversation.session_id, "q2")
    assert flags(as_alice, conversation) == (0, False)


def test_a_turn_that_failed_before_it_began_has_failed(as_alice: ApiClient, conversation: AgentInstance) -> None:
    make_turn(conversation, status="failed", started_at=None)
    assert flags(as_alice, conversation) == (0, True)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_other_ends_are_no_failures(as_alice: ApiClient, conversation: AgentInstance, status: str) -> None:
    say(conversation, "q2", "a2", status=status, options={"leaf": "q2"})
    assert flags(as_alice, conversation) == (0, False)


def test_two_hundred_conversations_cost_one_statement(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    for number in range(200):
        instance = make_instance(alice, f"c{number}")
        wait(make_turn(instance, status="running" if number % 2 else "failed"), f"c{number}")
    assert connection.features.supports_json_field  # a connection to SQLite asks once
    with CaptureQueriesContext(connection) as queries:
        items = as_alice.get("/instances?limit=200").json()["items"]
    assert len(items) == 200
    assert sum(item["has_failed"] for item in items) == 100
    assert sum(item["waiting_count"] for item in items) == 100  # of the running ones
    assert len(queries) == 4  # the session, the user, where she is a member, the list
