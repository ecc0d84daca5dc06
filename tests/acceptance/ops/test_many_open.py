"""Many things held open at once: streams do not keep other requests waiting, and the database sees few connections."""

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.acceptance.client.people import client
from tests.acceptance.product import UNLIMITED, Product, wait_for

STREAMS = 60
SOCKETS = 120
TURNS = 30
POOL = 12
BURST = 64
BURST_SECONDS = 360.0
"""Bound of a burst that hangs."""
MANY = UNLIMITED | {"THINK_INSTANCES_PER_USER": "0"}


class Caller:
    """Requests of one person's to the first web server, each on a connection of its own."""

    def __init__(self, product: Product, name: str) -> None:
        self._port = product.webs[0].port
        self._headers = {"Authorization": f"Bearer {product.token(name)}", "Content-Type": "application/json"}

    def open(self, method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        """Send a request; the answer's body may go on for ever."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        return connection.getresponse()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return its JSON."""
        with self.open(method, path, body) as reply:
            text = reply.read()
            assert reply.status < 300, text
            return json.loads(text)

    def ask(self, name: str, text: str) -> str:
        """Have a turn run in a conversation; returns its id."""
        instance = self.call("POST", "/api/v1/instances", {"agent": "assistant", "name": name})
        body = {"message": {"parts": [{"type": "text", "text": text}]}}
        turn: str = self.call("POST", f"/api/v1/instances/{instance['id']}/turns", body)["id"]
        return turn


@contextlib.contextmanager
def many_streams(caller: Caller, turn: str, count: int) -> Iterator[list[http.client.HTTPResponse]]:
    """So many open event streams of one turn, each with its first bytes read."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(caller.open("GET", f"/api/v1/turns/{turn}/stream")) for _ in range(count)]
        assert [reply.status for reply in opened] == [200] * count
        assert {reply.readline() for reply in opened} == {b": open\n"}
        yield opened


@pytest.mark.smoke
def test_open_streams_do_not_keep_other_requests_waiting(shared_product: Product) -> None:
    reader, other = Caller(shared_product, "reader"), Caller(shared_product, "other")
    turn = reader.ask("slow", "wait 120 s\nsay: late")
    with many_streams(reader, turn, STREAMS) as streams:
        for _ in range(3):
            assert other.call("GET", "/api/v1/instances")["items"] == []
            assert reader.call("GET", f"/api/v1/turns/{turn}")["status"] in {"pending", "running"}
        done = other.ask("quick", "say: at once")
        wait_for(lambda: other.call("GET", f"/api/v1/turns/{done}")["status"] == "completed", what="another's turn")
        assert reader.call("POST", f"/api/v1/turns/{turn}/cancel") == {"cancelled": True}
        for reply in streams:
            assert b"event: end" in reply.read()


class Census(threading.Thread):
    """Counts the connections of a database until it is stopped."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._stopped = threading.Event()
        self.counts: list[int] = []

    def run(self) -> None:
        """Count every tenth of a second."""
        question = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stopped.wait(0.1):
                row = connection.execute(question).fetchone()
                assert row is not None
                self.counts.append(row[0])

    def stop(self) -> int:
        """Stop; returns the most there were."""
        self._stopped.set()
        self.join(10)
        return max(self.counts)


async def test_the_database_sees_few_connections(make_product: Callable[..., Product]) -> None:
    product = make_product(
        database="postgres", worker_threads=TURNS, environ={**MANY, "THINK_DATABASE_POOL_SIZE": str(POOL)}
    )
    census = Census(product.environ["DATABASE_URL"])
    census.start()
    async with contextlib.AsyncExitStack() as stack:
        chats = [await stack.enter_async_context(client(product, f"room{number}")) for number in range(SOCKETS)]
        turns = await asyncio.gather(*(chat.send("stream 60 words at 20/s") for chat in chats[:TURNS]))
        async with asyncio.timeout(120):
            await asyncio.gather(*(turn.message() for turn in turns))
        most = census.stop()
    assert [turn.outcome for turn in turns] == ["completed"] * TURNS
    assert 0 < most <= 2 * POOL  # one web server, one worker
    for process in (*product.webs, *product.workers):
        assert "PoolTimeout" not in process.log
        assert "lease renewal failed" not in process.log


async def test_a_burst_of_sockets_on_sqlite_loses_nothing(make_product: Callable[..., Product]) -> None:
    """As `make run` has it: two web processes and two workers share one file."""
    product = make_product(database="sqlite", webs=2, workers=2, environ=MANY)
    product.token("alice")  # before the burst: making a person is no part of it

    async def talk(number: int) -> list[tuple[str, str]]:
        async with client(product, f"burst-{number}", web=number % 2) as chat:
            turn = await chat.send(f"say: answer {number}")
            await turn.message()
            assert turn.outcome == "completed"
            return [(message["role"], _text(message)) for message in await chat.get_messages()]

    async with asyncio.timeout(BURST_SECONDS):
        found = await asyncio.gather(*(talk(number) for number in range(BURST)))
    for number, messages in enumerate(found):
        assert messages == [("user", f"say: answer {number}"), ("assistant", f"answer {number}")]
    for process in (*product.webs, *product.workers):
        assert "database is locked" not in process.log
        assert "Traceback" not in process.log


def _text(message: Any) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")
