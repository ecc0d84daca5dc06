"""Browsers that a person is signed in with: listed in words, signed out one by one or all at once."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.access import api_tokens, browsers
from chat.models import AgentInstance, SignedInBrowser
from tests.db.chat.access_calls import client_of
from tests.db.chat.sockets import connection as socket_to

LINUX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
PHONE = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36"
AT = "/api/v1/account/browsers"


def signed_in(user: User, user_agent: str = LINUX) -> Client:
    """A browser that signs in by the form, as people do."""
    user.set_password("pass-for-tests")
    user.save()
    client = Client(headers={"user-agent": user_agent})
    reply = client.post("/sign-in/", {"username": user.username, "password": "pass-for-tests"})
    assert reply.status_code == 302
    return client


def second(user: User, user_agent: str = PHONE) -> Client:
    """Another browser of the same person's."""
    client = Client(headers={"user-agent": user_agent})
    assert client.post("/sign-in/", {"username": user.username, "password": "pass-for-tests"}).status_code == 302
    return client


def listed(client: Client) -> list[dict[str, Any]]:
    reply = client.get(AT)
    assert reply.status_code == 200
    items: list[dict[str, Any]] = reply.json()["items"]
    return items


def test_each_browser_is_listed_in_words_and_this_one_is_marked(alice: User, bob: User) -> None:
    here, there = signed_in(alice), second(alice)
    signed_in(bob)
    names = {(row["browser"], row["system"], row["is_current"]) for row in listed(here)}
    assert names == {("Firefox", "Linux", True), ("Chrome", "Android", False)}
    assert [row["is_current"] for row in listed(there) if row["system"] == "Android"] == [True]


def test_neither_the_address_nor_the_key_of_a_session_is_stored(alice: User) -> None:
    client = signed_in(alice)
    [row] = SignedInBrowser.objects.values_list()
    key = client.session.session_key
    assert key
    assert not any(key in str(value) or "127.0.0.1" in str(value) or "Gecko" in str(value) for value in row)


def test_one_is_signed_out_and_the_others_stay(alice: User) -> None:
    here, there = signed_in(alice), second(alice)
    [other] = [row for row in listed(here) if not row["is_current"]]
    assert here.delete(f"{AT}/{other['id']}").status_code == 204
    assert there.get(AT).status_code == 401
    assert len(listed(here)) == 1
    assert here.delete(f"{AT}/{other['id']}").status_code == 404


def test_all_others_are_signed_out_and_tokens_stay(alice: User) -> None:
    here, there = signed_in(alice), second(alice)
    _row, secret = api_tokens.create_token(alice, name="ci")
    assert here.delete(AT).json() == {"count": 1}
    assert there.get(AT).status_code == 401
    assert len(listed(here)) == 1
    assert Client().get(AT, headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def test_another_person_signs_nobody_out(alice: User, bob: User) -> None:
    hers = signed_in(alice)
    [row] = listed(hers)
    his = client_of(bob)
    assert his.delete(f"{AT}/{row['id']}").status_code == 404
    assert his.delete(AT).json() == {"count": 0}
    assert len(listed(hers)) == 1


def test_signing_out_takes_the_row_along(alice: User) -> None:
    signed_in(alice).post("/sign-out/")
    assert not SignedInBrowser.objects.exists()


def test_a_changed_password_leaves_no_other_browser(alice: User) -> None:
    signed_in(alice)
    assert len(browsers.browsers_of(alice)) == 1
    alice.set_password("changed")
    alice.save()
    assert browsers.browsers_of(alice) == []


def test_requests_write_only_every_some_minutes(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = signed_in(alice)
    with CaptureQueriesContext(connection) as queries:
        client.get("/api/v1/tokens")
    assert not [each for each in queries if "signedinbrowser" in each["sql"].lower()]
    before = timezone.now() - timedelta(hours=1)
    SignedInBrowser.objects.update(seen_at=before)
    monkeypatch.setattr(browsers, "_seen", {})  # as in another process
    client.get("/api/v1/tokens")
    assert SignedInBrowser.objects.get().seen_at > before + timedelta(minutes=59)
    SignedInBrowser.objects.update(seen_at=before)
    client.get("/api/v1/tokens")  # this process has noted it a moment ago
    assert SignedInBrowser.objects.get().seen_at == before


def test_a_session_that_is_older_than_the_table_is_found_when_it_is_used(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(alice)
    SignedInBrowser.objects.all().delete()
    monkeypatch.setattr(browsers, "_seen", {})
    assert [row["browser"] for row in listed(client)] == ["Firefox"]


def test_the_list_costs_the_same_for_many(alice: User) -> None:
    here = signed_in(alice)
    counts = []
    for number in (1, 4):
        for _ in range(number):
            second(alice)
        with CaptureQueriesContext(connection) as queries:
            assert len(listed(here)) > number
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("engine", ["cached_db", "cache", "file"])
def test_other_engines_of_sessions_sign_out_too(alice: User, settings: Any, tmp_path: Any, engine: str) -> None:
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
    settings.SESSION_FILE_PATH = str(tmp_path)
    here, there = signed_in(alice), second(alice)
    assert len(listed(here)) == 2
    assert here.delete(AT).json() == {"count": 1}
    assert there.get(AT).status_code == 401
    assert len(listed(here)) == 1


def test_sessions_that_are_cookies_are_not_listed(alice: User, settings: Any) -> None:
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    assert signed_in(alice).get(AT).json() == {"items": [], "is_known": False}
    assert not SignedInBrowser.objects.exists()


def test_rows_of_sessions_that_have_expired_are_removed(alice: User, settings: Any) -> None:
    client = signed_in(alice)
    assert browsers.prune_browsers() == 0
    Session.objects.all().delete()
    assert client.get(AT).status_code == 401
    long_ago = timezone.now() - timedelta(seconds=settings.SESSION_COOKIE_AGE, days=2)
    SignedInBrowser.objects.update(seen_at=long_ago)
    assert browsers.prune_browsers(dry_run=True) == 1
    assert browsers.prune_browsers() == 1
    assert not SignedInBrowser.objects.exists()


def test_deleting_a_person_leaves_no_row(alice: User) -> None:
    signed_in(alice)
    alice.delete()
    assert not SignedInBrowser.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("door", ["/agents/assistant/talk", "/agents/assistant/talk/chat"])
async def test_signing_out_closes_open_sockets_at_once(alice: User, settings: Any, door: str) -> None:
    there = await sync_to_async(signed_in)(alice)
    here = await sync_to_async(second)(alice)
    cookie = f"{settings.SESSION_COOKIE_NAME}={there.cookies[settings.SESSION_COOKIE_NAME].value}"
    socket = socket_to(door, cookie=cookie)
    assert (await socket.connect(timeout=15))[0]
    await sync_to_async(here.delete)(AT)
    closed = await socket.receive_output(timeout=15)
    while closed["type"] == "websocket.send":  # the handshake
        closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
    assert await AgentInstance.objects.acount() == 0
