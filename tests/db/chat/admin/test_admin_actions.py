"""Effects of actions in the admin: listed, and settled by those who may."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from chat.models import AgentInstance
from tests.db.chat.conftest import say
from tools_app.actions.ledger import BegunAction, Effect, begin_effect, settle_effect
from tools_app.calls.services import begin_call
from tools_app.core.tool_calls import ToolCall
from tools_app.models import ActionRecord, ToolCallRecord

URL = "/admin/think_tools/actionrecord/"


@pytest.fixture
def effect(alice: User, make_instance: Callable[..., AgentInstance]) -> ActionRecord:
    instance = make_instance(alice, "talk", title="A talk")
    turn = say(instance, "q1", "a1")
    begun = begin_effect(
        Effect(
            scope=instance.pk,
            owner_id=alice.pk,
            action="refund",
            key="A-1",
            is_explicit=True,
            input={"order": "A-1"},
            timeout_seconds=30,
            undo="cancel_refund",
            turn_id=turn.pk,
            call_id="c1",
        )
    )
    assert isinstance(begun, BegunAction)
    return ActionRecord.objects.get(pk=begun.record_id)


def staff(*codenames: str) -> Client:
    user = User.objects.create_user("staff", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def act(client: Client, action: str, row: ActionRecord) -> str:
    reply: Any = client.post(URL, {"action": action, "_selected_action": [str(row.pk)]}, follow=True)
    return str(reply.content.decode())


def settle(row: ActionRecord) -> None:
    begun = BegunAction(record_id=row.pk, token=row.attempt_token, attempt=1)
    assert settle_effect(begun, {"refunded": "A-1"}, ()) is None


def test_the_list_and_the_page_say_what_happened(effect: ActionRecord) -> None:
    client = staff("view_actionrecord")
    listed = client.get(URL).content.decode()
    for text in ("refund", "A-1", "alice", "Outcome not known yet", "cancel_refund"):
        assert text in listed
    settle(effect)
    page = client.get(f"{URL}{effect.pk}/change/").content.decode()
    assert "refunded" in page
    assert "Happened" in page
    assert "refund" in client.get(f"{URL}?status=settled").content.decode()


@pytest.mark.parametrize(
    ("action", "text", "status"),
    [("release", "1 of 1 released", "failed"), ("confirm", "1 of 1 confirmed", "settled")],
)
def test_staff_settle_what_is_stuck_once(effect: ActionRecord, action: str, text: str, status: str) -> None:
    client = staff("view_actionrecord", "change_actionrecord")
    assert text in act(client, action, effect)
    effect.refresh_from_db()
    assert effect.status == status
    assert "0 of 1" in act(client, action, effect)


def test_staff_give_a_result_to_a_call_that_never_got_it(effect: ActionRecord) -> None:
    client = staff("view_actionrecord", "change_actionrecord")
    begin_call(ToolCall(call_id="c1", tool_name="refund", input={}), turn_id=effect.turn_id, owner_id=effect.owner_id)
    assert "0 of 1 given" in act(client, "replay", effect)
    settle(effect)
    assert "1 of 1 given" in act(client, "replay", effect)
    call = ToolCallRecord.objects.get(call_id="c1")
    assert (call.status, call.output) == ("succeeded", {"refunded": "A-1"})
    assert "0 of 1 given" in act(client, "replay", effect)


@pytest.mark.parametrize("action", ["release", "confirm", "replay"])
def test_who_may_only_look_changes_nothing(effect: ActionRecord, action: str) -> None:
    act(staff("view_actionrecord"), action, effect)
    effect.refresh_from_db()
    assert effect.status == "pending"


def test_who_may_not_look_sees_nothing(effect: ActionRecord) -> None:
    assert staff().get(URL).status_code == 403
