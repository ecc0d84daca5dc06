"""People's own keys for providers: written and never read out, used for what their person asks alone."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from chat.access import api_tokens, provider_keys
from chat.agents import Assistant
from chat.conversations.data_records import RECORDS, rows_of
from chat.llm.scripted import ScriptedServer
from chat.llm.scripted.server import ServerOptions
from chat.members.services import add_member
from chat.models import AgentInstance, ProviderKey, Role, Turn
from fibers.testing import run_until_idle
from sessions_app.models import Message
from tests.db.chat.access_calls import client_of

AT = "/api/v1/provider-keys"
KEY, OTHER = "sk-hers-0123456789abcdef", "sk-his-0123456789fedcba"
SITES = "sk-of-the-site-000000000"
Make = Callable[..., AgentInstance]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def acme() -> Iterator[ScriptedServer]:
    """A provider that refuses every key but hers."""
    with ScriptedServer(ServerOptions(api_key=KEY)) as server:
        yield server


@pytest.fixture(autouse=True)
def _takes_keys(settings: Any, acme: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"base_url": acme.base_url, "api_key": SITES, "own_keys": True}
    settings.THINK_PROVIDERS = {"acme": entry, "closed": {**entry, "own_keys": False}}
    settings.THINK_MODELS = ("acme/scripted", "closed/scripted")
    monkeypatch.setattr(Assistant, "get_model", lambda _agent: "acme/scripted")
    monkeypatch.setattr(Assistant, "title_model", "none")


def store(client: Client, key: str, provider: str = "acme") -> Any:
    return client.put(f"{AT}/{provider}", {"key": key}, content_type="application/json")


def asked(user: User, instance: AgentInstance) -> Turn:
    """The turn of a message of this person's, after it has run."""
    body = {"message": {"parts": [{"type": "text", "text": "say: Hello."}]}}
    path = f"/api/v1/instances/{instance.pk}/turns"
    reply = client_of(user).post(path, body, content_type="application/json")
    assert reply.status_code == 202, reply.content
    async_to_sync(run_until_idle)(skip_delays=True)
    return Turn.objects.select_related("fiber").get(pk=reply.json()["id"])


def test_a_key_is_stored_encrypted_and_shown_by_its_end(alice: User) -> None:
    client = client_of(alice)
    [empty] = client.get(AT).json()
    assert empty == {"provider": "acme", "models": ["scripted"], "key": None}
    reply = store(client, f" {KEY} ")
    assert (reply.status_code, reply.json()["ending"]) == (200, "cdef")
    [shown] = client.get(AT).json()
    assert shown["key"]["ending"] == "cdef"
    assert KEY not in json.dumps(shown)
    assert not any(KEY in str(value) for value in ProviderKey.objects.values_list()[0])
    assert provider_keys.keys_for_work(alice.pk) == {"acme": KEY}


@pytest.mark.parametrize("key", ["", "short", "with spaces in it", "x" * 501, "kéyskéyskéys"])
def test_what_is_no_key_changes_nothing(alice: User, key: str) -> None:
    client = client_of(alice)
    store(client, KEY)
    assert store(client, key).status_code == 422
    assert provider_keys.keys_for_work(alice.pk) == {"acme": KEY}


@pytest.mark.parametrize("provider", ["closed", "openai", "nowhere"])
def test_only_where_the_site_takes_keys(alice: User, provider: str) -> None:
    assert store(client_of(alice), KEY, provider).json()["code"] == "key_not_found"
    assert not ProviderKey.objects.exists()


def test_a_token_stores_no_key_and_another_person_reaches_none(alice: User, bob: User) -> None:
    store(client_of(alice), KEY)
    _row, secret = api_tokens.create_token(alice, name="ci")
    headers = {"Authorization": f"Bearer {secret}"}
    body = json.dumps({"key": OTHER})
    reply = Client().put(f"{AT}/acme", body, content_type="application/json", headers=headers)
    assert reply.json()["code"] == "browser_needed"
    his = client_of(bob)
    assert [each["key"] for each in his.get(AT).json()] == [None]
    assert his.delete(f"{AT}/acme").status_code == 404
    assert his.post(f"{AT}/acme/try").status_code == 404
    assert provider_keys.keys_for_work(alice.pk) == {"acme": KEY}


def test_a_turn_is_asked_with_the_key_of_its_person(
    alice: User, make_instance: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    talk = make_instance(alice, "talk")
    assert asked(alice, talk).fiber.status == "failed"  # the site's own is refused
    store(client_of(alice), KEY)
    turn = asked(alice, talk)
    assert turn.fiber.status == "completed"
    client_of(alice).delete(f"{AT}/acme")
    assert asked(alice, talk).fiber.status == "failed"
    assert KEY not in caplog.text


def test_among_several_people_it_is_the_key_of_who_asks(alice: User, bob: User, make_instance: Make) -> None:
    talk = make_instance(alice, "talk")
    add_member(talk, bob.username, Role.WRITER, by=alice.pk)
    store(client_of(alice), KEY)
    assert asked(alice, talk).fiber.status == "completed"
    assert asked(bob, talk).fiber.status == "failed"
    store(client_of(alice), OTHER)
    store(client_of(bob), KEY)
    assert asked(bob, talk).fiber.status == "completed"
    assert asked(alice, talk).fiber.status == "failed"


def test_it_ends_when_the_site_takes_no_keys_any_more(
    alice: User, make_instance: Make, settings: Any, acme: ScriptedServer
) -> None:
    store(client_of(alice), KEY)
    settings.THINK_PROVIDERS = {"acme": {"base_url": acme.base_url, "api_key": SITES}}
    assert asked(alice, make_instance(alice, "talk")).fiber.status == "failed"
    assert client_of(alice).get(AT).json() == []


def test_a_refused_key_is_in_no_error_and_no_message(
    alice: User, make_instance: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store(client_of(alice), OTHER)
    turn = asked(alice, make_instance(alice, "talk"))
    turn.refresh_from_db()
    assert turn.fiber.status == "failed"
    for text in (caplog.text, str(turn.fiber.error), str(list(Message.objects.values_list("content", flat=True)))):
        assert OTHER not in text


def test_a_key_is_tried_on_request(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(alice)
    store(client, KEY)
    assert client.post(f"{AT}/acme/try").json()["outcome"] == "works"
    again = client.post(f"{AT}/acme/try")
    assert (again.status_code, again.json()["code"]) == (429, "quota_exceeded")
    monkeypatch.setattr(provider_keys, "TRIAL_SECONDS", 0)
    store(client, OTHER)
    assert client.get(AT).json()[0]["key"]["outcome"] == ""  # of the former one
    assert client.post(f"{AT}/acme/try").json()["outcome"] == "refused"
    monkeypatch.setattr("chat.llm.own_keys.TRY_SECONDS", 0.001)
    assert client.post(f"{AT}/acme/try").json()["outcome"] == "unreachable"


def test_keys_are_in_no_export_and_go_with_the_person(alice: User) -> None:
    store(client_of(alice), KEY)
    assert KEY not in str([list(rows_of(record, alice.pk)) for record in RECORDS])
    alice.delete()
    assert not ProviderKey.objects.exists()
