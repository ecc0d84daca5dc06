"""Connections of the pool: the server is not asked about each, and one that it has closed is not given away."""

import asyncio
import logging
import threading
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from tests.db.statements import statements
from thinkproject.kernel.aio import db
from thinkproject.postgresql import base

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no pool"),
]
TABS = 3


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked on connections besides their cursors' statements."""
    asked: list[str] = []
    execute: Any = psycopg.Connection.execute

    def noted(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        asked.append(str(query))
        return execute(self, query, *arguments, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", noted)
    return asked


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


async def backends_at_once(count: int) -> set[int]:
    """The server's processes of so many calls of the bridge that run at the same time."""
    together = threading.Barrier(count)

    def one() -> int:
        found = backend()
        together.wait(timeout=10)
        return found

    return set(await asyncio.gather(*(db(one) for _ in range(count))))


def end(backends: set[int]) -> None:
    """Close connections on the server's side, as a restart of it does."""
    with psycopg.connect(**settings_of_another()) as other:
        for one in backends:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [one])


def settings_of_another() -> dict[str, Any]:
    found = connection.get_connection_params()
    return {name: found[name] for name in ("dbname", "user", "password", "host", "port") if found.get(name)}


async def test_a_call_costs_its_statement_alone(questions: list[str]) -> None:
    known = {await db(backend) for _ in range(20)}  # more than there are in the pool, which takes them in turn
    questions.clear()
    with statements() as found:
        assert {await db(backend) for _ in range(5)} <= known
    assert (len(found), questions) == (5, [])


async def test_a_call_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert await db(backend) > 0
    assert [record.getMessage() for record in caplog.records] == []


async def test_what_was_not_used_for_a_while_is_asked(questions: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "ASK_AFTER_SECONDS", 0.0)
    known = {await db(backend) for _ in range(20)}
    questions.clear()
    assert {await db(backend) for _ in range(5)} <= known
    assert questions == [""] * 5


@pytest.mark.parametrize("seconds", [0.0, 3600.0], ids=["asked", "looked at"])
async def test_connections_that_the_server_closed_are_replaced(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "ASK_AFTER_SECONDS", seconds)
    before = await backends_at_once(TABS)
    assert len(before) == TABS
    end(before)
    after = await backends_at_once(TABS)
    assert len(after) == TABS
    assert not after & before


async def test_a_connection_that_ends_in_use_fails_its_call_alone() -> None:
    def end_itself() -> None:
        end({backend()})
        backend()

    with pytest.raises(OperationalError):
        await db(end_itself)
    assert await db(backend) > 0
