"""A person's own tokens over the API: made with a browser alone, shown once, revoked at once."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.access import api_tokens
from chat.models import ApiToken
from tests.db.chat.access_calls import client_of

AT = "/api/v1/tokens"


def by_token(secret: str, method: str = "GET", path: str = AT, body: bytes = b"") -> Any:
    headers = {"Authorization": f"Bearer {secret}"}
    return Client().generic(method, path, body, content_type="application/json", headers=headers)


def made(client: Client, **body: Any) -> Any:
    return client.post(AT, body, content_type="application/json")


def test_a_token_is_shown_once_and_works(alice: User) -> None:
    client = client_of(alice)
    reply = made(client, name=" CI ", days=30)
    token = reply.json()
    assert (reply.status_code, token["name"], token["scopes"]) == (201, "CI", [])
    assert token["secret"].startswith(token["prefix"])
    [shown] = client.get(AT).json()
    assert "secret" not in shown
    assert shown["expires_at"] is not None
    assert shown["used_at"] is None
    [noted] = by_token(token["secret"]).json()
    assert noted["used_at"] is None or noted["id"] == shown["id"]
    assert client.get(AT).json()[0]["used_at"] is not None


def test_a_revoked_token_opens_nothing_and_is_gone(alice: User) -> None:
    client = client_of(alice)
    token = made(client, name="CI").json()
    assert client.delete(f"{AT}/{token['id']}").status_code == 204
    assert by_token(token["secret"]).status_code == 401
    assert client.get(AT).json() == []
    reply = client.delete(f"{AT}/{token['id']}")
    assert (reply.status_code, reply.json()["code"]) == (404, "token_not_found")


@pytest.mark.parametrize("scopes", [[], ["streams"], ["execute:shop"]])
def test_a_token_makes_no_token(alice: User, scopes: list[str]) -> None:
    _row, secret = api_tokens.create_token(alice, name="ci", days=1, scopes=scopes)
    reply = by_token(secret, "POST", AT, b'{"name": "more"}')
    expected = (401, "unauthenticated") if scopes else (403, "browser_needed")
    assert (reply.status_code, reply.json()["code"]) == expected
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    "body", [{"name": ""}, {"name": "x", "days": 0}, {"name": "x", "scopes": ["all"]}, {"name": "x", "days": 99_999}]
)
def test_bad_input_makes_none(alice: User, body: dict[str, Any]) -> None:
    assert made(client_of(alice), **body).status_code == 422
    assert not ApiToken.objects.exists()


def test_another_person_neither_sees_nor_revokes_it(alice: User, bob: User) -> None:
    token, secret = api_tokens.create_token(alice, name="hers")
    his = client_of(bob)
    assert his.get(AT).json() == []
    assert his.delete(f"{AT}/{token.pk}").status_code == 404
    assert by_token(secret).status_code == 200


def test_a_person_has_so_many_at_most(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tokens, "MAX_LIVE", 2)
    client = client_of(alice)
    first = made(client, name="1").json()
    made(client, name="2")
    reply = made(client, name="3")
    assert (reply.status_code, reply.json()["code"]) == (429, "quota_exceeded")
    client.delete(f"{AT}/{first['id']}")
    assert made(client, name="3").status_code == 201
