"""Who opens a socket: bearer or cookie, from which page, and whether it still holds later."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.access import api_tokens
from chat.access.auth import Credential, authenticate_scope, holding, recheck
from chat.errors import OriginDenied
from chat.models import ApiToken


def scope(*, cookie: str = "", origin: str | None = "http://testserver", **extra: Any) -> dict[str, Any]:
    headers = [(b"host", extra.pop("host", "testserver").encode())]
    if cookie:
        headers.append((b"cookie", cookie.encode()))
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    headers += extra.pop("headers", [])
    return {"type": "websocket", "scheme": "ws", "headers": headers, "query_string": b"", **extra}


@pytest.fixture
def client_of_alice(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def cookie(client_of_alice: Client, settings: Any) -> str:
    return f"{settings.SESSION_COOKIE_NAME}={client_of_alice.cookies[settings.SESSION_COOKIE_NAME].value}"


def test_a_cookie_from_our_page_is_its_user(alice: User, cookie: str) -> None:
    credential = authenticate_scope(scope(cookie=cookie))
    assert credential is not None
    assert (credential.user_id, credential.kind) == (alice.pk, "session")


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "http://testserver:81", "https://testserver", "http://localhost"],
)
def test_a_cookie_from_another_page_is_refused_before_the_session_is_read(cookie: str, origin: str | None) -> None:
    with CaptureQueriesContext(connection) as queries, pytest.raises(OriginDenied):
        authenticate_scope(scope(cookie=cookie, origin=origin))
    assert not queries


def test_a_listed_page_may_use_the_cookie(cookie: str, settings: Any) -> None:
    settings.THINK_ALLOWED_ORIGINS = ["http://localhost:5173"]
    assert authenticate_scope(scope(cookie=cookie, origin="http://localhost:5173")) is not None


def test_a_rebound_host_is_refused(cookie: str) -> None:
    with pytest.raises(OriginDenied):
        authenticate_scope(scope(cookie=cookie, host="evil.example", origin="http://evil.example"))


def test_behind_a_trusted_proxy_the_page_is_https(cookie: str, settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    forwarded = [(b"x-forwarded-proto", b"https")]
    assert authenticate_scope(scope(cookie=cookie, origin="https://testserver", headers=forwarded)) is not None
    with pytest.raises(OriginDenied):
        authenticate_scope(scope(cookie=cookie, origin="http://testserver", headers=forwarded))


def test_an_untrusted_proxy_header_is_not_believed(cookie: str) -> None:
    with pytest.raises(OriginDenied):
        authenticate_scope(
            scope(cookie=cookie, origin="https://testserver", headers=[(b"x-forwarded-proto", b"https")])
        )


def test_an_unknown_user_is_anonymous(db: None, settings: Any) -> None:
    assert authenticate_scope(scope()) is None
    assert authenticate_scope(scope(cookie=f"{settings.SESSION_COOKIE_NAME}=made-up")) is None
    assert authenticate_scope(scope(cookie="other=1; ;;=; \x7f")) is None


def test_a_bearer_needs_no_origin(alice: User) -> None:
    _token, secret = api_tokens.create_token(alice, name="t")
    by_header = scope(origin=None, headers=[(b"authorization", f"Bearer {secret}".encode())])
    by_query = scope(origin="http://evil.example", query_string=f"_pk=1&token={secret}".encode())
    for given in (by_header, by_query):
        credential = authenticate_scope(given)
        assert credential is not None
        assert (credential.user_id, credential.kind) == (alice.pk, "token")


@pytest.mark.parametrize("secret", ["", "think_wrong", "x"])
def test_a_wrong_bearer_is_anonymous_even_with_a_good_cookie(cookie: str, secret: str) -> None:
    assert authenticate_scope(scope(cookie=cookie, query_string=f"token={secret}".encode())) is None
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    assert authenticate_scope(scope(cookie=cookie, headers=headers)) is None


def test_an_inactive_user_is_anonymous(alice: User, cookie: str) -> None:
    User.objects.update(is_active=False)
    assert authenticate_scope(scope(cookie=cookie)) is None


def test_a_session_of_an_unknown_backend_is_anonymous(cookie: str, settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.RemoteUserBackend"]
    assert authenticate_scope(scope(cookie=cookie)) is None


def test_connecting_does_not_rotate_the_session(cookie: str, settings: Any) -> None:
    before = Session.objects.get().session_key
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "a new key"
    # A session signed in under the old key still holds, and its key is not changed behind the browser's back.
    credential = authenticate_scope(scope(cookie=cookie))
    assert credential is not None
    assert still_holds(credential)
    assert Session.objects.get().session_key == before


# --- later -----------------------------------------------------------------------------------------------------------


def still_holds(credential: Credential) -> bool:
    """Asked for by itself and among others."""
    found = recheck(credential)
    others = [replace(credential, session_key="unknown", token_id=0), replace(credential, user_id=0, token_id=-1)]
    for asked in ([credential], [*others, credential]):
        assert (credential in holding(asked)) is found
    return found


def test_many_credentials_cost_three_queries(alice: User, bob: User, cookie: str) -> None:
    credentials = [authenticate_scope(scope(cookie=cookie))]
    for user in (alice, bob):
        _row, secret = api_tokens.create_token(user, name="t")
        credentials.append(authenticate_scope(scope(query_string=f"token={secret}".encode())))
    known = [credential for credential in credentials if credential is not None]
    assert len(known) == 3
    with CaptureQueriesContext(connection) as queries:
        assert holding(known) == set(known)
    assert len(queries) == 3
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert holding(known) == set(known[:2])
    assert holding([]) == set()


def test_a_live_credential_holds_for_one_query(cookie: str) -> None:
    credential = authenticate_scope(scope(cookie=cookie))
    assert credential is not None
    with CaptureQueriesContext(connection) as queries:
        assert recheck(credential)
    assert len(queries) == 1


def test_log_out_ends_live_connections(client_of_alice: Client, cookie: str) -> None:
    credential = authenticate_scope(scope(cookie=cookie))
    assert credential is not None
    client_of_alice.logout()
    assert not still_holds(credential)


def test_a_changed_password_ends_live_connections(alice: User, cookie: str) -> None:
    credential = authenticate_scope(scope(cookie=cookie))
    assert credential is not None
    alice.set_password("other")
    alice.save()
    assert not still_holds(credential)
    assert authenticate_scope(scope(cookie=cookie)) is None


@pytest.mark.parametrize("change", ["deactivate", "delete", "expire", "rotate"])
def test_whatever_ends_authority_ends_live_connections(
    alice: User, client_of_alice: Client, cookie: str, change: str
) -> None:
    credential = authenticate_scope(scope(cookie=cookie))
    assert credential is not None
    match change:
        case "deactivate":
            User.objects.update(is_active=False)
        case "delete":
            alice.delete()
        case "expire":
            Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
        case "rotate":
            session = client_of_alice.session
            session.cycle_key()
    assert not still_holds(credential)


@pytest.mark.parametrize("change", ["revoke", "expire", "deactivate", "delete"])
def test_a_token_that_ended_ends_live_connections(alice: User, change: str) -> None:
    token, secret = api_tokens.create_token(alice, name="t")
    credential = authenticate_scope(scope(query_string=f"token={secret}".encode()))
    assert credential is not None
    with CaptureQueriesContext(connection) as queries:
        assert recheck(credential)
    assert len(queries) == 1
    match change:
        case "revoke":
            assert api_tokens.revoke_token(token.pk)
        case "expire":
            ApiToken.objects.update(expires_at=timezone.now())
        case "deactivate":
            User.objects.update(is_active=False)
        case "delete":
            token.delete()
    assert not still_holds(credential)


@pytest.mark.parametrize("engine", ["cached_db", "cache", "signed_cookies"])
def test_other_session_engines_work(alice: User, settings: Any, engine: str) -> None:
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{engine}"
    client = Client()
    client.force_login(alice)
    name = settings.SESSION_COOKIE_NAME
    credential = authenticate_scope(scope(cookie=f"{name}={client.cookies[name].value}"))
    assert credential is not None
    assert still_holds(credential)
    client.logout()
    assert still_holds(credential) is (engine == "signed_cookies")  # such a session cannot be ended by the server
