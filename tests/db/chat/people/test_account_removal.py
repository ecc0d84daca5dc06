"""The end of an account: asked for twice, closed at once, removed in the background, and nothing of others."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from chat.access import api_tokens, browsers
from chat.files import attachments
from chat.members.services import add_member
from chat.models import AgentInstance, Attachment, Role, SignedInBrowser
from fibers.testing import run_until_idle
from sessions_app.models import Message
from tests.db.chat.access_calls import client_of
from tests.db.chat.access_rows import all_rows
from tests.db.chat.conftest import say

AT = "/api/v1/account"
Make = Callable[..., AgentInstance]
pytestmark = pytest.mark.django_db(transaction=True)


def work() -> None:
    async_to_sync(run_until_idle)(skip_delays=True)


def delete(client: Client, password: str = "") -> Any:
    return client.post(f"{AT}/delete", {"password": password}, content_type="application/json")


def with_password(user: User) -> Client:
    user.set_password("pass-for-tests")
    user.save()
    return client_of(user)


def without_password(user: User) -> Client:
    user.set_unusable_password()
    user.save()
    return client_of(user)


def test_what_goes_is_counted(alice: User, bob: User, make_instance: Make) -> None:
    talk = make_instance(alice, "talk")
    attachments.claim(alice.pk, [attachments.store_bytes(alice.pk, b"12345", name="a.txt").id], talk)
    add_member(make_instance(bob, "his"), alice.username, Role.READER, by=bob.pk)
    assert without_password(alice).get(AT).json() == {
        "name": "alice",
        "has_password": False,
        "is_fresh": True,
        "conversations": 1,
        "files": 1,
        "file_bytes": 5,
        "workspaces": 0,
        "memberships": 1,
        "is_last_administrator": False,
    }


def test_an_account_is_closed_at_once_and_removed_in_the_background(
    alice: User, bob: User, make_instance: Make
) -> None:
    talk = make_instance(alice, "talk")
    say(talk, "question", "answer")
    file = attachments.store_bytes(alice.pk, b"private", name="a.txt")
    attachments.claim(alice.pk, [file.id], talk)
    say(make_instance(bob, "his"), "his-question", "his-answer")
    _row, secret = api_tokens.create_token(alice, name="ci")
    client, other = with_password(alice), client_of(alice)
    assert delete(client, "pass-for-tests").status_code == 204
    for each in (client, other):
        assert each.get(AT).status_code == 401
    assert Client().get(AT, headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert not SignedInBrowser.objects.filter(user=alice).exists()
    assert AgentInstance.objects.filter(owner=alice).exists()  # not yet
    work()
    assert not User.objects.filter(pk=alice.pk).exists()
    assert list(AgentInstance.objects.values_list("owner_id", flat=True)) == [bob.pk]
    assert set(Message.objects.values_list("message_id", flat=True)) == {"his-question", "his-answer"}
    assert not Attachment.objects.exists()
    work()  # again is nothing


def test_a_wrong_password_changes_nothing(alice: User, make_instance: Make) -> None:
    make_instance(alice, "talk")
    client = with_password(alice)
    before = all_rows()
    for password in ("", "guessed"):
        reply = delete(client, password)
        assert (reply.status_code, reply.json()["code"]) == (403, "sign_in_needed")
    after = all_rows()
    after["axes.AccessAttempt"] = before["axes.AccessAttempt"]  # they count as attempts to sign in
    assert after == before


def test_guesses_are_limited_as_at_the_sign_in_page(alice: User, settings: Any) -> None:
    settings.THINK_SIGN_IN_TRIES = 2
    client = with_password(alice)
    for _ in range(3):
        delete(client, "guessed")
    assert delete(client, "pass-for-tests").status_code in {403, 429}
    alice.refresh_from_db()
    assert alice.is_active


def test_without_a_password_a_sign_in_of_a_moment_ago_counts(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = without_password(alice)
    monkeypatch.setattr(browsers, "FRESH_SECONDS", -1)
    assert delete(client).json()["code"] == "sign_in_needed"
    monkeypatch.undo()
    assert delete(client).status_code == 204


def test_a_token_deletes_no_account(alice: User) -> None:
    _row, secret = api_tokens.create_token(alice, name="ci")
    body = b'{"password": ""}'
    reply = Client().generic(
        "POST", f"{AT}/delete", body, content_type="application/json", headers={"Authorization": f"Bearer {secret}"}
    )
    assert (reply.status_code, reply.json()["code"]) == (403, "browser_needed")
    alice.refresh_from_db()
    assert alice.is_active


def test_the_last_administrator_stays(alice: User, bob: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    alice.refresh_from_db()
    client = without_password(alice)
    assert client.get(AT).json()["is_last_administrator"]
    reply = delete(client)
    assert (reply.status_code, reply.json()["code"]) == (409, "last_administrator")
    assert client.get(AT).status_code == 200
    User.objects.filter(pk=bob.pk).update(is_superuser=True)
    assert delete(client).status_code == 204


def test_an_account_that_was_opened_again_stays(alice: User, make_instance: Make) -> None:
    make_instance(alice, "talk")
    assert delete(without_password(alice)).status_code == 204
    User.objects.filter(pk=alice.pk).update(is_active=True)
    work()
    assert User.objects.filter(pk=alice.pk).exists()
    assert AgentInstance.objects.filter(owner=alice).count() == 1
