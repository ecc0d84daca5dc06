"""Members and invitations in the admin: no secret, no title, and an end that counts at once."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.members.services import add_member, invite
from chat.models import AgentInstance, Role
from chat.operations.deleted import put_into_deleted
from chat.shares.services import NewShare, make_link
from tests.db.chat.conftest import ApiClient
from tests.db.chat.staff import staff

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_link_for_readers_is_seen_and_taken_back(conversation: AgentInstance) -> None:
    row, secret = make_link(conversation, NewShare(days=1))
    _, client = staff("view_sharelink", "change_sharelink")
    url = "/admin/think_chat/sharelink/"
    for path in (url, f"{url}{row.pk}/change/"):
        text = client.get(path).content.decode()
        assert conversation.pk in text
        assert conversation.title not in text
        assert secret not in text
        assert row.token_hash not in text
    assert Client().get(f"/shared/{secret}").status_code == 200
    assert client.post(url, {"action": "revoke_links", "_selected_action": [row.pk]}, follow=True).status_code == 200
    assert Client().get(f"/shared/{secret}").status_code == 404


def test_a_deleted_conversation_is_not_there_for_staff(conversation: AgentInstance) -> None:
    _, client = staff("view_agentinstance", "change_agentinstance", "delete_agentinstance")
    url = "/admin/think_chat/agentinstance/"
    assert conversation.pk in client.get(url).content.decode()
    put_into_deleted([conversation])
    assert conversation.pk not in client.get(url).content.decode()
    assert client.get(f"{url}{conversation.pk}/change/").status_code == 302


def test_a_membership_and_an_invitation_are_seen_and_ended(
    as_bob: ApiClient, conversation: AgentInstance, alice: User, bob: User
) -> None:
    member = add_member(conversation, bob.username, Role.WRITER, by=alice.pk)
    invitation, secret = invite(conversation, Role.READER, by=alice.pk, days=1)
    names = [f"{verb}_{model}" for verb in ("view", "change") for model in ("membership", "invitation")]
    _, client = staff(*names)
    pages = {"membership": (member.pk, "end_memberships"), "invitation": (invitation.pk, "withdraw_invitations")}
    for model, (key, action) in pages.items():
        url = f"/admin/think_chat/{model}/"
        for path in (url, f"{url}{key}/change/"):
            shown: Any = client.get(path)
            assert shown.status_code == 200
            text = shown.content.decode()
            assert conversation.pk in text
            assert conversation.title not in text
            assert secret not in text
        assert client.post(url, {"action": action, "_selected_action": [key]}, follow=True).status_code == 200
    assert as_bob.get(f"/instances/{conversation.pk}").status_code == 404
    assert as_bob.send("POST", "/invitations/accept", {"secret": secret}).status_code == 404
