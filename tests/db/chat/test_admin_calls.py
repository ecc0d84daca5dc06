"""Tool calls in the admin: seen by those who may, decided by those who may, with who did it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.models import AgentInstance, Turn
from tests.db.chat.conftest import say
from tests.db.chat.staff import staff
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import ApprovalEvent, ToolCallRecord
from tools_app.services import pause_call

URL = "/admin/think_tools/toolcallrecord/"


@pytest.fixture
def question(alice: User, make_instance: Callable[..., AgentInstance]) -> ToolCallRecord:
    instance = make_instance(alice, "talk")
    turn = say(instance, "q1", "a1")
    pause = ToolPause(status=CallStatus.ASKED, approval_id="apr_1")
    call = ToolCall(call_id="c1", tool_name="pay", input={"amount": 5})
    return pause_call(call, pause, turn_id=turn.pk, scope=instance.pk, owner_id=alice.pk)


def act(client: Client, action: str, row: ToolCallRecord) -> Any:
    return client.post(URL, {"action": action, "_selected_action": [str(row.pk)]}, follow=True)


@pytest.mark.parametrize(("action", "status"), [("approve", "approved"), ("deny", "denied")])
def test_staff_decide_and_are_named(question: ToolCallRecord, action: str, status: str) -> None:
    user, client = staff("view_toolcallrecord", "change_toolcallrecord")
    assert f"1 of 1 {status}" in act(client, action, question).content.decode()
    question.refresh_from_db()
    assert question.status == status
    event = ApprovalEvent.objects.get(call=question, kind=status)
    assert (event.actor_id, event.via) == (user.pk, "admin")
    assert Turn.objects.filter(parent__pk=question.turn_id).count() == 1
    assert f"0 of 1 {status}" in act(client, action, question).content.decode()


def test_who_may_only_look_decides_nothing(question: ToolCallRecord) -> None:
    _, client = staff("view_toolcallrecord", "view_approvalevent")
    page = client.get(f"{URL}{question.pk}/change/").content.decode()
    assert "amount" in page
    assert "asked" in page
    act(client, "approve", question)
    question.refresh_from_db()
    assert question.status == CallStatus.ASKED


def test_who_may_not_look_sees_nothing(question: ToolCallRecord) -> None:
    _, client = staff()
    assert client.get(URL).status_code == 403
