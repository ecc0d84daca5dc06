"""Attempts to sign in are limited: for an account at an address, and for an address. Never for an account alone."""

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from chat.access import sign_in
from tests.db.races import together

pytestmark = pytest.mark.django_db

RIGHT, WRONG = "alice-password", "wrong"
DOORS = ["/sign-in/", "/admin/login/"]


@pytest.fixture(autouse=True)
def _limits(settings: Any) -> None:
    settings.IS_PRODUCTION = False
    settings.THINK_SIGN_IN_TRIES = 3
    settings.THINK_SIGN_IN_TRIES_PER_ADDRESS = 10


def attempt(name: str = "alice", password: str = WRONG, *, address: str = "10.0.0.1", door: str = DOORS[0]) -> Any:
    body = {"username": name, "password": password}
    return Client().post(door, body, REMOTE_ADDR=address)


@pytest.mark.parametrize("door", DOORS)
def test_an_account_is_locked_at_an_address_after_some_failures(alice: User, door: str) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    assert [attempt(door=door).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    refused = attempt(password=RIGHT, door=door)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 900
    assert b"Too many attempts" in refused.content
    assert attempt(password=RIGHT, address="10.0.0.2", door=door).status_code == 302


def test_a_lock_does_not_reveal_whether_the_account_exists(alice: User) -> None:
    known, unknown = ([attempt(name) for _ in range(5)] for name in ("alice", "nobody"))
    assert [reply.status_code for reply in known] == [reply.status_code for reply in unknown]
    assert without_nonce(known[-1].content) == without_nonce(unknown[-1].content)


def without_nonce(page: bytes) -> bytes:
    return re.sub(rb'nonce="[^"]*"', b"", page)


def test_a_lock_ends_by_itself_also_when_attempts_continue(alice: User) -> None:
    for _ in range(3):
        attempt()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(seconds=890))
    assert attempt().status_code == 429  # refused, so not counted
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(seconds=901))
    assert attempt(password=RIGHT).status_code == 302


def test_an_address_is_locked_after_failures_with_many_accounts(alice: User) -> None:
    statuses = [attempt(f"guess{number}").status_code for number in range(11)]
    assert statuses == [200] * 10 + [429]
    assert attempt(password=RIGHT).status_code == 429
    assert attempt(password=RIGHT, address="10.0.0.2").status_code == 302


def test_signing_in_forgets_the_failures_of_that_account_alone(alice: User, bob: User) -> None:
    for _ in range(2):
        attempt("alice")
        attempt("bob")
    assert attempt("alice", RIGHT).status_code == 302
    assert [attempt("alice").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert [attempt("bob").status_code for _ in range(2)] == [200, 429]


def test_an_attacker_with_an_account_cannot_reset_an_address(alice: User, bob: User) -> None:
    for number in range(9):
        attempt(f"guess{number}")
        if number % 2:
            attempt("bob", "bob-password")
    assert [attempt(f"more{number}").status_code for number in range(2)] == [200, 429]


def test_addresses_of_one_ipv6_network_count_together(alice: User) -> None:
    statuses = [attempt(address=f"2001:db8::{number}").status_code for number in range(1, 5)]
    assert statuses == [200, 200, 200, 429]
    assert attempt(password=RIGHT, address="2001:db8:0:1::1").status_code == 302


def test_forwarded_headers_of_a_client_change_nothing(alice: User) -> None:
    body = {"username": "alice", "password": WRONG}
    forged = [
        Client().post("/sign-in/", body, REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=f"10.9.9.{number}").status_code
        for number in range(4)
    ]
    assert forged == [200, 200, 200, 429]


def test_behind_a_trusted_proxy_the_address_is_the_one_that_it_wrote(alice: User, settings: Any) -> None:
    settings.TRUSTS_PROXY = True

    def through(forwarded: str) -> int:
        body = {"username": "alice", "password": WRONG}
        return Client().post("/sign-in/", body, REMOTE_ADDR="10.0.0.9", HTTP_X_FORWARDED_FOR=forwarded).status_code

    assert [through(f"10.7.7.{number}, 10.1.1.1") for number in range(4)] == [200, 200, 200, 429]
    assert through("10.1.1.2") == 200


def test_zero_is_no_limit(alice: User, settings: Any) -> None:
    settings.THINK_SIGN_IN_TRIES = settings.THINK_SIGN_IN_TRIES_PER_ADDRESS = 0
    assert {attempt().status_code for _ in range(12)} == {200}


@pytest.mark.django_db(transaction=True)
def test_parallel_guesses_are_no_more_than_the_limit(alice: User) -> None:
    statuses: list[int] = []
    lock = threading.Lock()

    def guess() -> None:
        status = attempt().status_code
        with lock:
            statuses.append(status)
        connection.close()

    assert together(*[guess] * 8) == []
    assert statuses.count(200) <= 3
    assert statuses.count(429) >= 5
    assert attempt(password=RIGHT).status_code == 429


@pytest.mark.django_db(transaction=True)
async def test_the_lock_holds_under_asgi(alice: User) -> None:
    body = {"username": "alice", "password": WRONG}
    statuses = [(await AsyncClient().post("/sign-in/", body)).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]


# --- sign-in links ---------------------------------------------------------------------------------------------------

LOCAL: dict[str, Any] = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost:8000"}


@pytest.mark.parametrize("method", ["get", "post"])
def test_guessed_links_lock_the_address(alice: User, method: str) -> None:
    guesses = [getattr(Client(), method)(f"/sign-in/guess{number}", **LOCAL).status_code for number in range(12)]
    assert guesses == [403] * 10 + [429, 429]
    link = f"/sign-in/{sign_in.create_link(alice)}"
    assert {Client().get(link, **LOCAL).status_code, Client().post(link, **LOCAL).status_code} == {429}


def test_a_used_link_leads_home_who_is_signed_in(alice: User) -> None:
    link = f"/sign-in/{sign_in.create_link(alice)}"
    client = Client()
    assert client.post(link, **LOCAL).status_code == 302
    for reply in (client.get(link, **LOCAL), client.post(link, **LOCAL)):
        assert (reply.status_code, reply["Location"]) == (302, "/")
        assert reply["Referrer-Policy"] == "no-referrer"
    assert Client().get(link, **LOCAL).status_code == 403
    assert AccessAttempt.objects.count() == 1  # of the stranger, not of the two before


def test_the_time_of_a_lock_is_a_setting(alice: User, settings: Any) -> None:
    settings.THINK_SIGN_IN_LOCK_SECONDS = 60
    for _ in range(3):
        attempt()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(seconds=61))
    assert attempt(password=RIGHT).status_code == 302
