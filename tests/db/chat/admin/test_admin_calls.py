"""Tool calls in the admin: seen by those who may, decided by those who may, with who did it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.models import AgentInstance, Turn
from tests.db.chat.conftest import say
from tests.db.chat.staff import staff
from tools_app.calls.services import begin_call, pause_call, settle_call
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolResult
from tools_app.models import ApprovalEvent, ToolCallRecord

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


def test_a_conversation_finds_the_calls_that_nobody_was_asked_about(
    alice: User, make_instance: Callable[..., AgentInstance]
) -> None:
    talk, other = make_instance(alice, "talk", title="Garden"), make_instance(alice, "other", title="Kitchen")
    for instance, tool in ((talk, "read"), (other, "pay")):
        turn = say(instance, f"q-{instance.name}", f"a-{instance.name}")
        begin_call(ToolCall(call_id="c1", tool_name=tool, input={}), turn_id=turn.pk, owner_id=alice.pk)
        settle_call("c1", turn_id=turn.pk, result=ToolResult(output="done"))
    _, client = staff("view_toolcallrecord")
    page = client.get(f"{URL}?q={talk.pk}").content.decode()
    assert "read" in page
    assert "pay" not in page
    assert ">Garden<" in client.get(URL).content.decode()


def test_a_page_of_a_question_has_its_buttons(question: ToolCallRecord) -> None:
    _, client = staff("view_toolcallrecord", "change_toolcallrecord")
    page = f"{URL}{question.pk}/change/"
    assert {f'value="{do}"' in client.get(page).content.decode() for do in ("approve", "deny")} == {True}
    assert client.post(f"{URL}{question.pk}/act/", {"do": "run"}).status_code == 404
    assert client.get(f"{URL}{question.pk}/act/").status_code == 405
    assert client.post(f"{URL}{question.pk}/act/", {"do": "deny"}).headers["Location"] == page
    question.refresh_from_db()
    assert question.status == CallStatus.DENIED
    assert 'value="deny"' not in client.get(page).content.decode()


def test_a_conversation_says_what_it_waits_for_and_takes_the_decision(question: ToolCallRecord) -> None:
    _, client = staff("view_toolcallrecord", "change_toolcallrecord", "view_agentinstance", "view_message", "view_turn")
    page = f"/admin/think_chat/agentinstance/{question.scope}/change/"
    shown = client.get(page).content.decode()
    assert "Completed" not in shown
    assert shown.count("Waits for a decision") >= 3  # the state, the question, and its turn
    assert "Waits for a decision" in client.get("/admin/think_chat/turn/").content.decode()
    decided = client.post(f"{URL}{question.pk}/act/", {"do": "approve", "back": "1"})
    assert decided.headers["Location"] == page
    question.refresh_from_db()
    assert question.status == CallStatus.APPROVED


def test_who_may_only_look_finds_no_buttons_of_a_question(question: ToolCallRecord) -> None:
    _, client = staff("view_toolcallrecord", "view_agentinstance")
    for page in (f"{URL}{question.pk}/change/", f"/admin/think_chat/agentinstance/{question.scope}/change/"):
        assert 'value="approve"' not in client.get(page).content.decode()
    assert client.post(f"{URL}{question.pk}/act/", {"do": "approve"}).status_code == 403


def test_a_question_is_not_shown_to_who_may_not_see_calls(question: ToolCallRecord) -> None:
    _, client = staff("view_agentinstance")
    assert "pay" not in client.get(f"/admin/think_chat/agentinstance/{question.scope}/change/").content.decode()
