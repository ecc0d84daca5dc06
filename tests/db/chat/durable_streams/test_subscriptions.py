"""Workers that are woken: webhooks over real HTTP, and what happens when they fail, are slow, or are elsewhere."""

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.durable_streams import wakes
from chat.durable_streams.waking import matches
from chat.models import StreamSubscription
from fibers.models import Fiber
from fibers.services import cancel_fiber
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.durable_streams.client import JSON, Program

pytestmark = pytest.mark.django_db(transaction=True)


class Receiver(ThreadingHTTPServer):
    """A webhook's receiver. Answers as a test wants; keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[dict[str, Any]] = []
        self.answers: list[tuple[int, bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(json.loads(body))
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, b'{"done": true}')
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        if status == 302:
            self.send_header("Location", self.server.url)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    server = Receiver()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


async def subscribe(program: Program, receiver: Receiver, **more: Any) -> None:
    body = {"type": "webhook", "pattern": "jobs/*", "webhook": {"url": receiver.url}, "lease_ttl_ms": 60_000, **more}
    reply = await program.send("PUT", "__ds/subscriptions/s", json.dumps(body).encode())
    assert reply.status_code == 201, reply.content


async def links(program: Program) -> dict[str, str]:
    found = json.loads(await program.read("__ds/subscriptions/s"))
    return {each["path"]: each["acked_offset"] for each in found["streams"]}


async def test_a_wake_comes_once_for_all_that_is_new(her_program: Program, receiver: Receiver) -> None:
    await her_program.put("jobs/old", b"before")
    await subscribe(her_program, receiver)
    await her_program.put("jobs/new", b"1")
    for _ in range(3):
        await her_program.send("POST", "jobs/new", b"2")
    await her_program.send("POST", "jobs/old", b"after")
    await her_program.put("elsewhere", b"nothing")
    await run_until_idle()
    [wake] = receiver.got
    pending = {each["path"]: each["tail_offset"] for each in wake["streams"] if each["has_pending"]}
    assert pending == {"jobs/new": f"{0:016}_{4:016}", "jobs/old": f"{0:016}_{11:016}"}
    assert await links(her_program) == pending
    await her_program.send("POST", "jobs/new", b"3")
    await run_until_idle()
    assert [each["generation"] for each in receiver.got] == [1, 2]


@pytest.fixture
def _long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second try comes by itself, however slow the machine is."""
    monkeypatch.setattr(wakes, "FIRST_PAUSE", 30.0)


@pytest.mark.usefixtures("_long_pauses")
async def test_a_webhook_that_fails_is_tried_again(her_program: Program, receiver: Receiver) -> None:
    receiver.answers = [(500, b""), (302, b"")]  # a redirect is not followed
    await subscribe(her_program, receiver)
    await her_program.put("jobs/a", b"1")
    await run_until_idle()
    row = await StreamSubscription.objects.aget()
    assert (row.failures, "500" in row.error_text) == (1, True)
    waiting = await Fiber.objects.aget(status="pending", name="chat.stream_wake")
    pause = (waiting.available_at - timezone.now()).total_seconds()
    assert pause < 37
    await run_until_idle(skip_delays=True)
    assert len(receiver.got) == 3
    row = await StreamSubscription.objects.aget()
    assert (row.failures, row.error_text, row.wake_id) == (0, "", "")


async def test_pauses_grow_to_a_minute_and_are_not_all_alike(
    her_program: Program, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 s, 2 s, 4 s … 60 s, each a fifth shorter or longer, in rows; here all of them thirty times as long."""
    monkeypatch.setattr(wakes, "FIRST_PAUSE", 30 * wakes.FIRST_PAUSE)
    monkeypatch.setattr(wakes, "LONGEST_PAUSE", 30 * wakes.LONGEST_PAUSE)
    receiver.answers = [(503, b"")] * 8
    await subscribe(her_program, receiver)
    await her_program.put("jobs/a", b"1")
    pauses = []
    for _ in range(8):
        await run_until_idle()
        await her_program.send("POST", "jobs/a", b"x")  # what is new meanwhile waits as well
        waiting = await Fiber.objects.aget(status="pending", name="chat.stream_wake")
        pauses.append((waiting.available_at - waiting.created_at).total_seconds() / 30)
        await Fiber.objects.filter(pk=waiting.pk).aupdate(available_at=timezone.now())
    for pause, wanted in zip(pauses, (1, 2, 4, 8, 16, 32, 60, 60), strict=True):
        assert 0.79 * wanted < pause < 1.21 * wanted
    assert pauses[6] != pauses[7]
    await run_until_idle()
    assert len(receiver.got) == 9
    assert await links(her_program) == {"jobs/a": f"{0:016}_{9:016}"}


async def test_a_wake_that_was_given_up_does_not_silence_its_subscription(
    her_program: Program, receiver: Receiver
) -> None:
    await subscribe(her_program, receiver)
    await her_program.put("jobs/a", b"1")
    await sync_to_async(cancel_fiber)((await Fiber.objects.aget(name="chat.stream_wake")).pk)
    await run_until_idle()
    assert receiver.got == []
    await her_program.send("POST", "jobs/a", b"2")
    await run_until_idle()
    assert [each["generation"] for each in receiver.got] == [2]
    assert await links(her_program) == {"jobs/a": f"{0:016}_{2:016}"}


async def test_a_lease_that_is_over_wakes_again_and_fences(her_program: Program, receiver: Receiver) -> None:
    receiver.answers = [(202, b"later"), (202, b"later")]
    await subscribe(her_program, receiver)
    await her_program.put("jobs/a", b"1")
    await run_until_idle()
    await her_program.send("POST", "jobs/a", b"2")
    await run_until_idle()
    assert len(receiver.got) == 1  # it has the work
    await StreamSubscription.objects.aupdate(leased_until=timezone.now() - timedelta(seconds=1))
    await run_until_idle(skip_delays=True)
    first, second = receiver.got
    assert (first["generation"], second["generation"]) == (1, 2)

    async def report(wake: dict[str, Any], **more: Any) -> Any:
        body = {"wake_id": wake["wake_id"], "generation": wake["generation"], **more}
        path = wake["callback_url"].partition("/v1/stream/")[2]
        return await Program().send(
            "POST", path, json.dumps(body).encode(), Authorization=f"Bearer {wake['callback_token']}"
        )

    reply = await report(first, done=True)
    assert (reply.status_code, json.loads(reply.content)["error"]["code"]) == (409, "FENCED")
    acks = [{"stream": "jobs/a", "offset": f"{0:016}_{1:016}"}]
    assert json.loads((await report(second, acks=acks)).content) == {"ok": True, "next_wake": False}
    beyond = [{"stream": "jobs/a", "offset": f"{0:016}_{9:016}"}]
    assert json.loads((await report(second, acks=beyond)).content)["error"]["code"] == "INVALID_OFFSET"
    assert json.loads((await report(second, done=True)).content) == {"ok": True, "next_wake": True}
    assert await links(her_program) == {"jobs/a": f"{0:016}_{1:016}"}


async def test_a_worker_that_dies_sends_the_same_wake(her_program: Program, receiver: Receiver) -> None:
    await subscribe(her_program, receiver)
    await her_program.put("jobs/a", b"1")
    with crash_after("begun"):
        await run_until_idle()
    assert [each["generation"] for each in receiver.got] == [1]
    assert await links(her_program) == {"jobs/a": f"{0:016}_{1:016}"}


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/x", "https://127.0.0.1/x", "https://[::1]/x", "http://1.1.1.1/x", "https://169.254.169.254/",
     "https://0x7f.1/", "ftp://example.com/", "https://user:word@1.1.1.1/", "https://[::ffff:10.0.0.1]/"],
)  # fmt: skip
async def test_webhooks_lead_to_public_addresses_alone(her_program: Program, url: str) -> None:
    body = {"type": "webhook", "pattern": "**", "webhook": {"url": url}}
    reply = await her_program.send("PUT", "__ds/subscriptions/s", json.dumps(body).encode())
    assert (reply.status_code, json.loads(reply.content)["error"]["code"]) == (400, "WEBHOOK_URL_REJECTED")
    assert not await StreamSubscription.objects.aexists()


@pytest.mark.usefixtures("_long_pauses")
async def test_an_address_that_is_private_now_gets_nothing(
    her_program: Program, receiver: Receiver, settings: Any
) -> None:
    await subscribe(her_program, receiver)
    settings.THINK_MCP_PRIVATE_NETWORKS = []
    await her_program.put("jobs/a", b"1")
    await run_until_idle()
    assert receiver.got == []
    assert (await StreamSubscription.objects.aget()).failures == 1


async def test_a_wake_and_an_append_at_once_lose_nothing(her_program: Program, receiver: Receiver) -> None:
    await subscribe(her_program, receiver)
    await her_program.put("jobs/a", b"")
    for _ in range(5):
        appends = [her_program.send("POST", "jobs/a", b"x") for _ in range(3)]
        await asyncio.gather(*appends, run_until_idle())
    await run_until_idle()
    stream = await her_program.send("HEAD", "jobs/a")
    assert await links(her_program) == {"jobs/a": stream["Stream-Next-Offset"]}


async def test_subscriptions_are_limited(her_program: Program, alice: User, settings: Any) -> None:
    settings.THINK_DURABLE_STREAMS = {"subscriptions": 1}
    await her_program.put("wakes", type_=JSON)
    body = json.dumps({"type": "pull-wake", "pattern": "a", "wake_stream": "wakes"}).encode()
    statuses = [(await her_program.send("PUT", f"__ds/subscriptions/{name}", body)).status_code for name in "aab"]
    assert statuses == [201, 200, 429]
    assert await sync_to_async(StreamSubscription.objects.filter(owner=alice).count)() == 1


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [("a/*", "a/b", True), ("a/*", "a/b/c", False), ("a/*", "a/", False), ("a/**", "a/b/c", True), ("a/**", "a", True),
     ("**", "a/b", True), ("*", "a", True), ("*", "a/b", False), ("a.b", "axb", False), ("a/*-log", "a/x-log", True)],
)  # fmt: skip
def test_patterns(pattern: str, path: str, *, fits: bool) -> None:
    assert matches(pattern, path) is fits
