"""Links that decide one call: shown first, used once, for exactly the arguments and the person they were made for."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chat.errors import CallDecided, CallNotFound, InputInvalid
from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.members.services import add_member
from chat.models import AgentInstance, Role
from tests.db.chat.http.api.questions import ask
from tools_app.models import ApprovalEvent, ToolCallRecord

pytestmark = pytest.mark.django_db(transaction=True)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def link(conversation: AgentInstance, call_id: str, user: User, *, approves: bool = True, **more: Any) -> str:
    handle = AgentHandle(key_of(conversation))
    make = async_to_sync(handle.decision_path)
    path: str = make(f"apr-{call_id}", approves=approves, user_id=user.pk, **more)
    return path


def status(call_id: str) -> str:
    return ToolCallRecord.objects.get(call_id=call_id).status


@pytest.mark.parametrize(("approves", "ends_as", "words"), [(True, "approved", "Allow"), (False, "denied", "Decline")])
def test_a_look_decides_nothing_and_a_click_once(
    alice: User, conversation: AgentInstance, approves: bool, ends_as: str, words: str
) -> None:
    ask(conversation, "c1")
    path, client = link(conversation, "c1", alice, approves=approves), client_of(alice)
    for _ in range(2):
        page = client.get(path)
        assert (page.status_code, status("c1")) == (200, "asked")
        assert all(text in page.content.decode() for text in ("Pay 5 for A-1?", "Payment", "A-1", words))
        assert page["Referrer-Policy"] == "no-referrer"
    assert client.post(path).status_code == 200
    assert status("c1") == ends_as
    event = ApprovalEvent.objects.exclude(kind="asked").get()
    assert (event.actor_id, event.via, event.kind) == (alice.pk, "link", ends_as)
    assert client.post(path).status_code == client.get(path).status_code == 409
    assert ApprovalEvent.objects.exclude(kind="asked").count() == 1


def test_other_arguments_are_not_decided(alice: User, conversation: AgentInstance) -> None:
    row = ask(conversation, "c1")
    path, client = link(conversation, "c1", alice), client_of(alice)
    ToolCallRecord.objects.filter(pk=row.pk).update(input={"order": "A-1", "amount": 5000})
    assert client.get(path).status_code == client.post(path).status_code == 409
    assert status("c1") == "asked"


def test_it_is_for_one_person_who_may_answer(alice: User, bob: User, conversation: AgentInstance) -> None:
    ask(conversation, "c1")
    member = add_member(conversation, "bob", Role.APPROVER, by=alice.pk)
    path = link(conversation, "c1", bob)
    assert Client().get(path).status_code == 302, "signed out"
    assert client_of(alice).post(path).status_code == 404, "made for another person"
    member.role = Role.READER
    member.save()
    assert client_of(bob).post(path).status_code == 403
    assert status("c1") == "asked"
    member.role = Role.APPROVER
    member.save()
    assert client_of(bob).post(path).status_code == 200


def test_forged_and_expired_ones_decide_nothing(
    alice: User, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(conversation, "c1")
    path, client = link(conversation, "c1", alice, hours=1), client_of(alice)
    assert client.post(path[:-2] + "xx").status_code == 404
    later = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert client.post(path).status_code == 404
    assert status("c1") == "asked"


def test_links_are_made_for_open_questions_of_ones_own_alone(
    alice: User, bob: User, conversation: AgentInstance, make_instance: Any
) -> None:
    row = ask(conversation, "c1")
    theirs = make_instance(bob, "theirs")
    with pytest.raises(CallNotFound):
        link(theirs, "c1", bob)
    with pytest.raises(InputInvalid):
        link(conversation, "c1", alice, hours=1_000)
    ToolCallRecord.objects.filter(pk=row.pk).update(status="denied")
    with pytest.raises(CallDecided):
        link(conversation, "c1", alice)
