"""The feed of a product as it is started: processes that die in the middle, and published clients that follow it."""

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from tests.acceptance.feed.state_client import command
from tests.acceptance.product import Product, wait_for
from tests.chaos.durable.postgres import OwnPostgres

Change = tuple[int, str, str, str]
IMPATIENT = {"THINK_STREAM_KEEP_ALIVE_SECONDS": "0.5"}


class Api:
    """One person's calls of the API."""

    def __init__(self, product: Product, name: str) -> None:
        self.product, self.headers = product, {"Authorization": f"Bearer {product.token(name)}"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        url = self.product.url(f"/api/v1{path}")
        reply = httpx.request(method, url, json=body, headers=self.headers, timeout=30)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def conversation(self) -> str:
        return str(self.call("POST", "/instances", {"agent": "assistant"})["id"])

    def ask(self, instance_id: str, text: str) -> str:
        body = {"message": {"parts": [{"type": "text", "text": text}]}}
        return str(self.call("POST", f"/instances/{instance_id}/turns", body)["id"])

    def has_status(self, turn_id: str, wanted: str = "completed") -> bool:
        """Whether a turn stands so; not while the server cannot say it."""
        url = self.product.url(f"/api/v1/turns/{turn_id}")
        with contextlib.suppress(httpx.HTTPError):
            reply = httpx.get(url, headers=self.headers, timeout=30)
            return reply.status_code == 200 and reply.json()["status"] == wanted
        return False

    def events(self, query: str, **headers: str) -> Iterator[tuple[str, int, Any]]:
        """Events of one connection. Errors: `httpx.HTTPError` where it is cut."""
        url = self.product.url(f"/api/v1/events?{query}")
        with httpx.stream("GET", url, headers={**self.headers, **headers}, timeout=30) as reply:
            reply.raise_for_status()
            fields: dict[str, str] = {}
            for line in reply.iter_lines():
                name, found, value = line.partition(": ")
                if found and name:
                    fields[name] = value
                elif fields and not line:
                    yield fields["event"], int(fields.get("id", 0)), json.loads(fields["data"])
                    fields = {}


class Follower(threading.Thread):
    """A client that comes back with the last id that it has seen, until it is asked to end."""

    def __init__(self, api: Api, instance_id: str) -> None:
        super().__init__()
        self.api, self.instance_id = api, instance_id
        self.found: list[Change] = []
        self.last: int | None = None
        self.connections = 0
        self.is_ready, self.is_ending = threading.Event(), threading.Event()

    def run(self) -> None:
        while not self.is_ending.is_set():
            self.connections += 1
            headers = {} if self.last is None else {"Last-Event-ID": str(self.last)}
            try:
                self._follow(headers)
            except httpx.HTTPError:
                time.sleep(0.1)  # the server is starting again

    def _follow(self, headers: dict[str, str]) -> None:
        for event, number, data in self.api.events(f"instance={self.instance_id}", **headers):
            if event == "change":
                self.found.append((number, data["type"], data["op"], data["key"]))
            self.last = number
            self.is_ready.set()
            if self.is_ending.is_set():
                return


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_no_change_is_lost_or_doubled_when_worker_and_web_server_are_killed(make_product: Any, database: str) -> None:
    product: Product = make_product(database=database, environ=IMPATIENT)
    webs, workers = product.webs, product.workers
    follower = follow_through(product, [workers[0].restart, webs[0].restart, workers[0].restart])
    assert follower.connections > 1


def test_no_change_is_lost_or_doubled_when_the_database_is_killed(make_product: Any) -> None:
    own = OwnPostgres()
    try:
        product: Product = make_product(environ={"DATABASE_URL": own.address, **IMPATIENT})
        follow_through(product, [own.restart, own.restart])
    finally:
        own.close()


def follow_through(product: Product, blows: list[Callable[[], None]]) -> Follower:
    """Answer a question for each blow, which comes in the middle; who follows has each change once, in order.

    A database that is away for a moment need not cut those who follow; a web server that is killed does.
    """
    api = Api(product, "alice")
    talk = api.conversation()
    follower = Follower(api, talk)
    follower.start()
    assert follower.is_ready.wait(20)
    start = follower.last
    for strike in blows:
        turn = api.ask(talk, "marker: feed\nstream 40 words at 20/s")
        wait_for(partial(api.has_status, turn, "running"), what="the answer")
        strike()
        wait_for(lambda: product.answers(product.webs[0]), what="the web server")
        wait_for(partial(api.has_status, turn), seconds=60, what="the end of the answer")
    *replayed, (kind, end, _) = api.events(f"instance={talk}&after={start}&follow=false")
    assert kind == "end"
    wait_for(lambda: (follower.last or 0) >= end, what="the follower")
    follower.is_ending.set()
    follower.join(20)
    wanted = [(number, data["type"], data["op"], data["key"]) for event, number, data in replayed if event == "change"]
    assert [each for each in follower.found if each[0] <= end] == wanted
    ids = {message["id"] for message in api.call("GET", f"/instances/{talk}/messages")["items"]}
    named = [key.rpartition("/")[2] for _, kind, op, key in wanted if (kind, op) == ("message", "insert")]
    assert sorted(named) == sorted(ids), "each message is there once"
    assert len([each for each in wanted if each[1:3] == ("turn", "insert")]) == len(blows)
    return follower


class Program:
    """The published client as a program of its own. `lines`: what its collections held, after each change."""

    def __init__(self, product: Product, instance_id: str, name: str, live: str) -> None:
        environ = {
            **os.environ,
            "STATE_URL": product.url(f"/v1/stream/conversations/{instance_id}"),
            "STATE_TOKEN": product.token(name),
            "STATE_LIVE": live,
        }
        self.process = subprocess.Popen(
            command(), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[Any] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(map(json.loads, self.process.stdout))

    def has(self, **wanted: Any) -> bool:
        """Whether it holds this now. Errors: `AssertionError` where it has ended."""
        assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
        return bool(self.lines) and all(self.lines[-1][name] == value for name, value in wanted.items())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()


@pytest.mark.smoke
def test_the_published_state_client_shows_a_conversation_live(shared_product: Product) -> None:
    api = Api(shared_product, "alice")
    talk = api.conversation()
    first = api.ask(talk, "say: one")
    wait_for(partial(api.has_status, first), what="the first answer")
    tabs = [Program(shared_product, talk, "alice", live) for live in ("sse", "long-poll")]
    try:
        said = [["user", "say: one"], ["assistant", "one"]]
        for tab in tabs:
            wait_for(partial(tab.has, said=said, turns=["completed"]), what="what was said before")
        api.ask(talk, "say: two")
        said += [["user", "say: two"], ["assistant", "two"]]
        for tab in tabs:
            wait_for(partial(tab.has, said=said, turns=["completed"] * 2), what="what is said now")
        api.call("POST", f"/instances/{talk}/clear")
        api.ask(talk, "say: three")
        for tab in tabs:
            wait_for(
                partial(tab.has, said=[["user", "say: three"], ["assistant", "three"]]),
                what="a clear conversation",
            )
    finally:
        for tab in tabs:
            tab.close()
