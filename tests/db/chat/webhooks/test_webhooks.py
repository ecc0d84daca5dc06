"""Receivers of wakes: a server of the draft and this product's own server, both over real HTTP."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import AsyncClient

from chat.durable_streams import signatures
from chat.models import StreamSubscription
from chat.webhooks import adapter as adapters
from chat.webhooks import verifying
from chat.webhooks.receiving import (
    AckImmediate,
    Checkpoint,
    RequestBound,
    RunnerSession,
    Webhook,
    create_webhook,
    drain_until_idle,
)
from fibers.context import FiberContext, current_fiber
from fibers.errors import FiberError
from fibers.models import Fiber
from fibers.testing import die, run_until_idle
from tests.db.chat.durable_streams.client import Program
from tests.wake_server import SECRET, WakeServer, signed, wake_server
from tools_app.fetching.errors import FetchFailed

from .hooked_urls import HOOKS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.db.chat.webhooks.hooked_urls")]

Run = Callable[[RunnerSession], Awaitable[object]]


@pytest.fixture(autouse=True)
def _no_receiver() -> Iterator[None]:
    yield
    HOOKS.pop("hook").dispose()


@pytest.fixture
def waker(settings: Any) -> Iterator[WakeServer]:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    with wake_server() as server:
        yield server


def receive(waker: WakeServer, run: Run, **more: Any) -> Webhook:
    more = {"secret": SECRET, "server": waker.origin, "heartbeat_seconds": 60.0, **more}
    HOOKS["hook"] = create_webhook("one", run, **more)
    return HOOKS["hook"]  # type: ignore[no-any-return]


async def post(body: bytes, signature: str | None = None) -> Any:
    header = signed(body) if signature is None else signature
    headers = {"Webhook-Signature": header}
    return await AsyncClient().post("/hooks/one", body, content_type="application/json", headers=headers)


async def post_wake(wake: dict[str, Any]) -> Any:
    return await post(json.dumps(wake).encode())


async def work(session: RunnerSession) -> None:
    """Store each path once, then say how far it is."""
    for each in session.wake.payload["streams"]:
        await Group.objects.acreate(name=f"{session.wake.id} {each['path']}")
        await session.checkpoint(Checkpoint(each["path"], "5"))
    await session.complete(done=True)


async def test_a_wake_is_stored_before_it_is_answered_and_a_worker_runs_it_once(waker: WakeServer) -> None:
    receive(waker, work)
    wake = waker.wake()
    for _ in range(3):  # deliveries are repeated
        reply = await post_wake(wake)
        assert (reply.status_code, json.loads(reply.content)) == (202, {"accepted": True})
    assert waker.got == []
    fiber = await Fiber.objects.aget()
    assert wake["token"] not in str(vars(fiber))
    await run_until_idle()
    assert await Group.objects.acount() == 2
    claim, *rest = waker.got
    assert claim == {"epoch": 1, "wake_id": wake["wake_id"]}
    acks = [{"path": path, "offset": "5"} for path in ("log", "mail")]
    assert rest == [{"epoch": 1, "acks": acks, "done": True}]  # together, with the end
    assert (waker.state, waker.refusals) == ("idle", [])
    assert (await Fiber.objects.aget()).result == {"done": True}


async def test_within_a_request_the_answer_says_whether_it_is_done(waker: WakeServer) -> None:
    left = [2]

    async def has_more() -> bool:
        return bool(left[0])

    async def cycle(_session: RunnerSession) -> bool:
        left[0] -= 1
        return True

    async def drain(session: RunnerSession) -> None:
        found = await drain_until_idle(session, has_pending_work=has_more, run_cycle=cycle)
        await session.complete(done=found.completed)

    hook = receive(waker, drain, mode=RequestBound(max_seconds=20))
    reply = await post_wake(waker.wake())
    assert (reply.status_code, json.loads(reply.content), left) == (200, {"done": True}, [0])
    assert waker.state == "idle"
    assert not await Fiber.objects.aexists()
    hook.dispose()

    async def endless(_session: RunnerSession) -> None:
        await asyncio.sleep(60)  # until its time is over

    receive(waker, endless, mode=RequestBound(max_seconds=0.3))
    reply = await post_wake(waker.wake())
    assert (reply.status_code, json.loads(reply.content)) == (200, {"done": False})
    assert waker.state == "waking"  # woken again at once
    assert not await Fiber.objects.aexists()


async def test_what_another_runner_has_claimed_runs_nothing(waker: WakeServer) -> None:
    receive(waker, work)
    stale = waker.wake()
    await post_wake(stale)
    waker.wake()  # the server gave it up meanwhile
    await run_until_idle()
    assert waker.refusals == ["STALE_EPOCH"]
    assert (await Fiber.objects.aget()).result == {"rejected": True}
    assert not await Group.objects.aexists()


async def test_a_handler_that_fails_says_nothing_and_the_server_wakes_again(waker: WakeServer) -> None:
    async def fails(_session: RunnerSession) -> None:
        raise ValueError("broken")

    receive(waker, fails)
    await post_wake(waker.wake())
    await run_until_idle(skip_delays=True)
    assert ((await Fiber.objects.aget()).status, waker.state, len(waker.got)) == ("failed", "live", 1)


async def test_the_end_waits_for_the_token_of_a_callback_that_is_under_way(
    waker: WakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters, "ACK_SECONDS", 0.05)

    async def ends_early(session: RunnerSession) -> None:
        await session.checkpoint(Checkpoint("log", "1"))
        waker.lets_answer.clear()
        while waker.acks.get("log") != "1":  # noqa: ASYNC110 - the server gets it from the timer
            await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_later(0.2, waker.lets_answer.set)
        await session.complete(done=True)

    receive(waker, ends_early)
    await post_wake(waker.wake())
    await run_until_idle()
    assert (waker.state, waker.refusals, waker.acks["log"]) == ("idle", [], "1")


@pytest.mark.parametrize("place", ["before", "claimed", "stored"])
async def test_a_worker_that_dies_is_followed_by_one_with_the_same_claim(waker: WakeServer, place: str) -> None:
    deaths = [place]

    def here(name: str) -> None:
        context = current_fiber()
        assert isinstance(context, FiberContext)
        if deaths and deaths[0] == name:
            deaths.pop()
            die(context)

    async def dies(session: RunnerSession) -> None:
        here("claimed")
        for each in session.wake.payload["streams"]:
            await Group.objects.aget_or_create(name=f"{session.wake.id} {each['path']}")
            here("stored")
            await session.checkpoint(Checkpoint(each["path"], "5"))
        await session.complete(done=True)

    receive(waker, dies)
    wake = waker.wake()
    reply = await post_wake(wake)
    assert reply.status_code == 202
    if place == "before":
        deaths.clear()
        await Fiber.objects.aupdate(status="running", fence=1, attempt=1, lease_until="2020-01-01T00:00:00Z")
        from fibers.execution.recovery import sweep

        await asyncio.to_thread(sweep)
    await run_until_idle(skip_delays=True)
    assert (waker.state, waker.refusals, waker.acks) == ("idle", [], {"log": "5", "mail": "5"})
    assert await Group.objects.acount() == 2


async def test_tokens_rotate_one_callback_after_the_other_and_expired_ones_are_replaced(
    waker: WakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters, "ACK_SECONDS", 0.05)
    monkeypatch.setattr(adapters, "PAUSE_SECONDS", 0.01)

    async def busy(session: RunnerSession) -> None:
        waker.expires, waker.fails = 1, 1
        for number in range(100):
            await session.checkpoint(Checkpoint("log", str(number)))
            if number % 10 == 0:
                await asyncio.gather(session.heartbeat(), session.heartbeat())
        while waker.acks.get("log") != "99":  # noqa: ASYNC110 - the server gets it from the timer
            await asyncio.sleep(0.01)
        await session.complete(done=True)

    receive(waker, busy, heartbeat_seconds=0.02)
    await post_wake(waker.wake())
    await run_until_idle()
    assert (await Fiber.objects.aget()).result == {"done": True}
    assert sorted(waker.refusals) == ["TOKEN_EXPIRED", "UNAVAILABLE"]
    offsets = [int(ack["offset"]) for body in waker.got for ack in body.get("acks", ())]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < 60
    assert {"epoch": 1} in waker.got  # a heartbeat with nothing to acknowledge


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"signature": ""}, 401),
        ({"signature": "t=now,sha256=00"}, 401),
        ({"at": -400.0}, 401),
        ({"at": 400.0}, 401),
        ({"secret": "other"}, 401),
        ({"body": b"{"}, 400),
        ({"body": b"[]"}, 400),
        ({"callback": "http://169.254.169.254/latest"}, 400),
        ({"callback": "http://127.0.0.1:1/callback"}, 400),
        ({"callback": "file:///etc/passwd"}, 400),
        ({"epoch": "many"}, 400),
    ],
)
async def test_what_does_not_come_from_the_server_is_refused_and_nothing_is_stored(
    waker: WakeServer, change: dict[str, Any], code: int
) -> None:
    receive(waker, work)
    given = dict(change)
    signature, body = given.pop("signature", None), given.pop("body", None)
    at, secret = given.pop("at", 0.0), given.pop("secret", SECRET)
    data = body if body is not None else json.dumps({**waker.wake(), **given}).encode()
    reply = await post(data, signed(data, secret=secret, at=time.time() + at) if signature is None else signature)
    assert reply.status_code == code, reply.content
    assert not await Fiber.objects.aexists()


async def test_one_changed_byte_is_refused(waker: WakeServer) -> None:
    receive(waker, work)
    body = json.dumps(waker.wake()).encode()
    reply = await post(body.replace(b"mirror", b"mirrow"), signed(body))
    assert (reply.status_code, json.loads(reply.content)["error"]["code"]) == (401, "SIGNATURE_INVALID")
    assert (await AsyncClient().get("/hooks/one")).status_code == 405


async def test_a_server_in_a_private_network_is_not_called_back(waker: WakeServer, settings: Any) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = []
    receive(waker, work)
    await post_wake(waker.wake())
    await run_until_idle()
    assert waker.got == []
    assert "address" in str((await Fiber.objects.aget()).error)


def test_a_receiver_that_cannot_check_or_has_a_taken_name_is_refused(waker: WakeServer) -> None:
    hook = receive(waker, work)
    with pytest.raises(FiberError, match="taken"):
        create_webhook("one", work, server=waker.origin, secret=SECRET)
    both: dict[str, Any] = {"secret": SECRET, "jwks_url": f"{waker.origin}/jwks.json"}
    for more in ({}, both):
        with pytest.raises(FiberError, match="either"):
            create_webhook("two", work, server=waker.origin, **more)
    with pytest.raises(FetchFailed):
        create_webhook("two", work, server=waker.origin, jwks_url="https://elsewhere.example.org/jwks.json")
    assert hook.mode == AckImmediate(status=202)


# The protocol as it is today, with this product's server on the other side


async def test_the_products_own_server_wakes_a_receiver(
    alice: User, live_server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    origin = live_server.url.replace("localhost", "127.0.0.1")
    seen: list[dict[str, str]] = []

    async def follow(session: RunnerSession) -> None:
        seen.extend(session.wake.payload["streams"])
        await session.complete(done=True)

    jwks = f"{origin}/v1/stream/__ds/jwks.json"
    HOOKS["hook"] = create_webhook("one", follow, server=origin, jwks_url=jwks)
    program = await Program(alice).sign_in()
    subscribed = {"type": "webhook", "pattern": "jobs/*", "webhook": {"url": f"{origin}/hooks/one"}}
    reply = await program.send("PUT", "__ds/subscriptions/s", json.dumps(subscribed).encode())
    assert reply.status_code == 201, reply.content
    await StreamSubscription.objects.aupdate(root=f"{origin}/v1/stream")  # as who made it over the network knows it
    await program.put("jobs/a", b"one")
    await run_until_idle()
    await program.send("POST", "jobs/a", b"two")
    await run_until_idle()
    row = await StreamSubscription.objects.aget()
    assert (row.generation, row.wake_id, row.failures, row.error_text) == (2, "", 0, "")
    offsets = [f"{0:016}_{0:016}", f"{0:016}_{3:016}"]
    assert seen == [{"path": "jobs/a", "offset": offset} for offset in offsets]
    assert [each.result async for each in Fiber.objects.filter(name="chat.webhook:one")] == [{"done": True}] * 2
    body = b"{}"
    assert (await post(body, signatures.sign(body))).status_code == 400  # the key is known
    assert (await post(body, signatures.sign(b"[]"))).status_code == 401
    stranger = signatures.sign(body).replace("kid=", "kid=other")
    assert (await post(body, stranger)).status_code == 401
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the next one", [settings.SECRET_KEY]
    monkeypatch.setattr(verifying, "LOOK_SECONDS", 0.0)
    assert (await post(body, signatures.sign(body))).status_code == 400  # a new key is looked for
