"""Invitations: a link that works once, for some days, and is known to the database as a hash alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from chat.members import services
from chat.members.services import add_member, invite, prune_invitations
from chat.models import AgentInstance, Invitation, Membership, Role
from tests.db.chat.access_rows import all_rows
from tests.db.chat.conftest import ApiClient


@pytest.fixture
def invited(as_alice: ApiClient, conversation: AgentInstance) -> Any:
    """An invitation of Alice's, as it is shown once."""
    reply = as_alice.send("POST", f"/instances/{conversation.pk}/invitations", {"role": "writer", "days": 2})
    assert reply.status_code == 201
    return reply.json()


def accept(person: ApiClient, secret: str) -> Any:
    return person.send("POST", "/invitations/accept", {"secret": secret})


def test_the_first_who_accepts_becomes_a_member(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, invited: Any
) -> None:
    path = f"/instances/{conversation.pk}/invitations"
    assert [row["id"] for row in as_alice.get(path).json()] == [invited["id"]]
    assert "secret" not in as_alice.get(path).json()[0]
    assert invited["secret"] not in str(all_rows())  # a hash is stored
    reply = accept(as_bob, invited["secret"])
    assert (reply.status_code, reply.json()["role"], reply.json()["instance_id"]) == (200, "writer", conversation.pk)
    assert as_alice.get(path).json() == []
    carol = ApiClient(User.objects.create_user("carol"))
    assert accept(carol, invited["secret"]).status_code == 404
    assert carol.get(f"/instances/{conversation.pk}").status_code == 404
    assert Membership.objects.count() == 1


def test_every_invalid_secret_is_answered_alike(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, invited: Any
) -> None:
    expired = invite(conversation, Role.READER, by=None, days=1)
    Invitation.objects.filter(pk=expired[0].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    path = f"/instances/{conversation.pk}/invitations/{invited['id']}"
    assert as_alice.send("DELETE", path).status_code == 204
    assert as_alice.send("DELETE", path).status_code == 404
    answers = {accept(as_bob, secret).content for secret in (invited["secret"], expired[1], "never-made", "\x00")}
    assert len(answers) == 1
    assert not Membership.objects.exists()


def test_a_role_is_never_made_less_by_a_link(
    as_bob: ApiClient, conversation: AgentInstance, bob: User, alice: User
) -> None:
    add_member(conversation, bob.username, Role.APPROVER, by=alice.pk)
    _, secret = invite(conversation, Role.READER, by=alice.pk, days=1)
    assert accept(as_bob, secret).json()["role"] == "approver"


def test_the_owner_does_not_use_a_link_up(as_alice: ApiClient, as_bob: ApiClient, invited: Any) -> None:
    assert accept(as_alice, invited["secret"]).status_code == 422
    assert accept(as_bob, invited["secret"]).status_code == 200


def test_so_many_can_be_open(
    as_alice: ApiClient, conversation: AgentInstance, invited: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_INVITATIONS", 1)
    path = f"/instances/{conversation.pk}/invitations"
    assert as_alice.send("POST", path, {}).status_code == 422
    assert as_alice.send("DELETE", f"{path}/{invited['id']}").status_code == 204
    assert as_alice.send("POST", path, {}).status_code == 201


def test_the_page_of_a_link_changes_nothing_before_its_button(
    bob: User, conversation: AgentInstance, invited: Any
) -> None:
    page = Client()
    assert page.get(invited["path"]).status_code == 302  # to the login page
    page.force_login(bob)
    shown = page.get(invited["path"])
    assert shown.status_code == 200
    assert shown["Referrer-Policy"] == "no-referrer"
    assert page.get("/join/never-made").content.count(b"form") == shown.content.count(b"form")
    assert not Membership.objects.exists()
    assert page.post(invited["path"])["Location"] == f"/c/{conversation.pk}"
    assert page.get(f"/c/{conversation.pk}").status_code == 200
    assert page.post(invited["path"]).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)
    assert strict.post(invited["path"]).status_code == 403


def test_ended_invitations_are_removed_later(conversation: AgentInstance, invited: Any) -> None:
    assert prune_invitations() == 0
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=31))
    assert (prune_invitations(dry_run=True), prune_invitations(), prune_invitations()) == (1, 1, 0)
