"""Bearer tokens: hashed, named, expiring, revocable, their use noted now and then."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.access import api_tokens
from chat.errors import InputInvalid
from chat.models import ApiToken


def call(secret: str, method: str = "GET", path: str = "/api/v1/instances", **extra: Any) -> Any:
    return Client(enforce_csrf_checks=True).generic(
        method, path, headers={"Authorization": f"Bearer {secret}"}, **extra
    )


def test_a_token_opens_the_api_without_csrf(alice: User) -> None:
    _row, secret = api_tokens.create_token(alice, name="ci")
    assert call(secret).status_code == 200
    body = b'{"agent": "assistant"}'
    assert call(secret, "POST", data=body, content_type="application/json").status_code == 201


def test_only_its_hash_is_stored(alice: User) -> None:
    row, secret = api_tokens.create_token(alice, name="ci")
    stored = ApiToken.objects.filter(pk=row.pk).values_list()[0]
    assert not any(secret in str(value) for value in stored)
    assert secret.startswith(row.prefix)
    assert len(row.prefix) < len(secret) / 3


@pytest.mark.parametrize("change", ["revoke", "expire", "deactivate"])
def test_one_that_ended_opens_nothing(alice: User, change: str) -> None:
    row, secret = api_tokens.create_token(alice, name="ci", days=1)
    match change:
        case "revoke":
            assert api_tokens.revoke_token(row.pk)
            assert not api_tokens.revoke_token(row.pk)
        case "expire":
            ApiToken.objects.update(expires_at=timezone.now())
        case "deactivate":
            User.objects.update(is_active=False)
    reply = call(secret)
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated")
    assert reply["WWW-Authenticate"].startswith("Bearer")


def test_a_wrong_token_is_not_saved_by_a_cookie(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    assert client.get("/api/v1/instances", headers={"Authorization": "Bearer think_x"}).status_code == 401


def test_a_token_in_the_query_opens_no_api(alice: User) -> None:
    _row, secret = api_tokens.create_token(alice, name="ci")
    assert Client().get(f"/api/v1/instances?token={secret}").status_code == 401


def test_a_cookie_needs_the_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.get("/api/v1/instances").status_code == 200
    reply = client.post("/api/v1/instances", b'{"agent": "assistant"}', content_type="application/json")
    assert (reply.status_code, reply["Content-Type"]) == (403, "application/problem+json")


def test_its_use_is_written_now_and_then(alice: User) -> None:
    _row, secret = api_tokens.create_token(alice, name="ci")
    call(secret)
    first = ApiToken.objects.get().used_at
    assert first is not None
    with CaptureQueriesContext(connection) as queries:
        call(secret)
    assert not [q for q in queries if q["sql"].startswith("UPDATE")]
    ApiToken.objects.update(used_at=timezone.now() - timedelta(hours=1))
    call(secret)
    assert ApiToken.objects.get().used_at > first  # type: ignore[operator]


@pytest.mark.parametrize(("name", "days"), [("", None), ("  ", None), ("x" * 101, None), ("ok", 0), ("ok", -1)])
def test_a_token_needs_a_name_and_a_life(alice: User, name: str, days: int | None) -> None:
    with pytest.raises(InputInvalid):
        api_tokens.create_token(alice, name=name, days=days)


def test_the_command_prints_it_once(alice: User) -> None:
    out = StringIO()
    call_command("create_api_token", "alice", name="laptop", days=30, stdout=out)
    secret = out.getvalue().strip().splitlines()[-1]
    assert call(secret).status_code == 200
    assert ApiToken.objects.get().name == "laptop"


def test_the_command_refuses_unknown_and_inactive_users(alice: User) -> None:
    with pytest.raises(CommandError):
        call_command("create_api_token", "nobody", name="x")
    User.objects.update(is_active=False)
    with pytest.raises(CommandError):
        call_command("create_api_token", "alice", name="x")


def test_ended_ones_are_pruned_after_a_while(alice: User) -> None:
    old, _ = api_tokens.create_token(alice, name="old")
    fresh, _ = api_tokens.create_token(alice, name="fresh")
    api_tokens.create_token(alice, name="live")
    ApiToken.objects.filter(pk=old.pk).update(revoked_at=timezone.now() - timedelta(days=91))
    api_tokens.revoke_token(fresh.pk)
    assert api_tokens.prune_tokens(dry_run=True) == 1
    assert api_tokens.prune_tokens() == 1
    assert set(ApiToken.objects.values_list("name", flat=True)) == {"fresh", "live"}
