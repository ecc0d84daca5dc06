"""Each process killed in the middle of an answer: the answer completes, nothing lost, nothing doubled.

The same words are asked of an undisturbed conversation; the provider answers both alike, so that the answers must be
equal byte by byte. The oracle then compares all places. How long the pause was is printed, and not asserted.
"""

import asyncio
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from fibers.queue.names import list_of, taken_key
from tests.acceptance.product import Product, redis_socket
from tests.chaos import oracle
from tests.chaos.driver import database_of, make_brief
from tests.chaos.evidence import collect, query
from tests.chaos.lines import Line, text_of, user_message

WORDS = 200
LONGER = 600
"""Where the line itself is gone: who comes back after the end would get the transcript alone."""
STOP_SECONDS = 5.0

Act = Callable[[Product], None]


def script(words: int) -> str:
    """What is asked; the same words are answered alike."""
    return f"marker: kills\nstream {words} words at 40/s"


async def answer(
    product: Product, room: str, act: Act | None = None, *, words: int = WORDS, seconds: float = 90
) -> tuple[Line, str, float]:
    """Ask and wait for the end; `act` happens in the middle. Returns the client, the request and the moment of it."""
    url = product.url(f"/agents/assistant/{room}?token={product.token('alice')}").replace("http", "ws", 1)
    line = Line(room, room, url, random.Random(1))
    assert await line.wait(lambda: line.is_open, seconds=20)
    request = await line.ask([user_message(script(words))])
    acted_at = 0.0
    if act is not None:
        assert await line.wait(lambda: line.seen.get(request, 0) > 40, seconds=20)
        acted_at = time.time()
        act(product)
    assert await line.wait(lambda: request in line.ended, seconds=seconds), f"no end; held: {line.text(request)!r}"
    await asyncio.sleep(1)  # what came after the end, and must not, would come at once
    return line, request, acted_at


def pause(line: Line, request: str, acted_at: float) -> float:
    """Seconds from the kill to the first chunk after the longest silence that followed it."""
    moments = [at for at, _ in line.arrivals(request) if at >= acted_at]
    pairs = zip([acted_at, *moments], moments, strict=False)
    return max(((after - before, after - acted_at) for before, after in pairs), default=(0.0, 0.0))[1]


async def check(
    product: Product, name: str, act: Act, *, words: int = WORDS, redis_killed: bool = False
) -> tuple[Line, float]:
    """Answer once disturbed and once not: the same everywhere. Returns the disturbed client and the pause."""
    line, request, acted_at = await answer(product, "disturbed", act, words=words)
    calm, calm_request, _ = await answer(product, "calm", words=words)
    try:
        assert line.ended[request] == "completed"
        assert line.text(request) == calm.text(calm_request)
        assert len(line.text(request).split()) == words
        assert text_of(line.transcript[-1]) == line.text(request)
        seconds = pause(line, request, acted_at)
        sys.stdout.write(f"{name}: first continued chunk after {seconds:.1f} s (goal under 20)\n")
        kills = [{"what": "redis", "at": acted_at}] if redis_killed else []
        requests: list[dict[str, Any]] = [
            {"room": who.room, "request": r, "text": script(words), "stopped": False}
            for who, r in ((line, request), (calm, calm_request))
        ]
        brief = await make_brief(product, [line, calm], requests, kills)
        world = await asyncio.to_thread(collect, brief)
        assert oracle.compare(world) == []
        return line, seconds
    finally:
        await asyncio.gather(line.close(), calm.close())


@pytest.mark.smoke
async def test_killed_worker(own_product: Product) -> None:
    await check(own_product, "kill -9 of the worker", lambda p: p.workers[0].restart())


async def test_killed_web_server(own_product: Product) -> None:
    line, _ = await check(own_product, "kill -9 of the web server", lambda p: p.webs[0].restart(), words=LONGER)
    assert len(line.connections) > 1


async def test_killed_redis(own_product: Product) -> None:
    await check(own_product, "kill -9 of Redis", lambda p: p.redis.restart(), redis_killed=True)
    assert own_product.workers[0].is_running


async def test_both_workers_killed(make_product: Callable[..., Product]) -> None:
    def act(product: Product) -> None:
        for worker in product.workers:
            worker.kill()
        for worker in product.workers:
            worker.start()

    await check(make_product(workers=2), "kill -9 of both workers", act)


async def test_stopped_worker_hands_back(make_product: Callable[..., Product]) -> None:
    product = make_product(workers=2)
    took: list[float] = []

    def act(product: Product) -> None:
        (mine,) = [worker for worker in product.workers if _runs_a_turn(product, worker.pid)]
        begun = time.monotonic()
        assert mine.stop() == 0
        took.append(time.monotonic() - begun)

    _, seconds = await check(product, "SIGTERM of the worker", act)
    sys.stdout.write(f"SIGTERM to exit: {took[0]:.1f} s (goal under {STOP_SECONDS:.0f})\n")
    assert took[0] < 2 * STOP_SECONDS  # the machine may be slow; a worker that hangs takes fifteen
    assert seconds < 10  # a lease that was not handed back runs that long


def _runs_a_turn(product: Product, pid: int) -> bool:
    workers = query(database_of(product), "select worker from think_fibers_fiber where status = 'running'")
    return any(f":{pid}:" in name for (name,) in workers)


@pytest.mark.parametrize("is_taken", [True, False], ids=["name", "task"])
async def test_lost_message_of_the_broker(own_product: Product, is_taken: bool) -> None:
    """A name that a worker took and a task that a worker received, each lost with it."""
    own_product.workers[0].stop()
    url = own_product.url(f"/agents/assistant/lost?token={own_product.token('alice')}").replace("http", "ws", 1)
    line = Line("A", "lost", url, random.Random(1))
    try:
        address = str(redis_socket(own_product.folder))
        with redis.Redis(unix_socket_path=address, socket_timeout=30) as client:
            if is_taken:
                client.set(taken_key(""), "1", ex=60)
            else:
                client.delete(taken_key(""))
            request = await line.ask([user_message("say: Here after all.")])
            carrier = list_of("") if is_taken else "think"
            assert await asyncio.to_thread(client.blmove, carrier, "lost", 20)
        begun = time.monotonic()
        own_product.workers[0].start()
        assert await line.wait(lambda: request in line.ended, seconds=60)
        assert line.text(request) == "Here after all."
        sys.stdout.write(f"lost message: answered {time.monotonic() - begun:.1f} s after the worker's start\n")
    finally:
        await line.close()


@pytest.fixture(autouse=True)
def _said(capsys: pytest.CaptureFixture[str]) -> Any:
    """The pauses are printed even when all is well."""
    yield
    said = capsys.readouterr().out
    with capsys.disabled():
        sys.stdout.write("\n" + said)
