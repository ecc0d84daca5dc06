"""Sockets on which nothing happens: how many one web process holds, what each costs in memory and all in CPU."""

import asyncio
import resource
import time

from bench.chats import greeted
from bench.rig import Meter, Options, running, socket_url
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

SOCKETS = 5_000
GOAL_CPU_PERCENT = 5.0
IDLE_SECONDS = 30.0
AT_ONCE = 40


def open_files() -> int:
    """How many files this process may open, after asking for enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * SOCKETS if hard == resource.RLIM_INFINITY else min(2 * SOCKETS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


async def open_all(product: Product, count: int) -> tuple[list[Socket], list[float]]:
    """Open so many sockets, each to a conversation of its own; seconds each took."""
    sockets: list[Socket] = []
    times: list[float] = []
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            began = time.perf_counter()
            socket = await Socket.connect(socket_url(product, f"idle-{number}"))
            await greeted(socket)
            times.append(time.perf_counter() - began)
            sockets.append(socket)

    await asyncio.gather(*(worker() for _ in range(min(AT_ONCE, count))))
    return sockets, times


async def measure(product: Product, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    wanted = 50 if options.is_smoke else min(SOCKETS, open_files() - 200)
    warm, _ = await open_all(product, 20)
    meter = Meter.of(product)
    before = meter.memory("web")
    began = time.perf_counter()
    sockets, times = await open_all(product, wanted)
    opening = time.perf_counter() - began
    await asyncio.sleep(0.5 if options.is_smoke else 5)
    each = (meter.memory("web") - before) / len(sockets)
    seconds = 1.0 if options.is_smoke else min(options.seconds, IDLE_SECONDS)
    meter.start()
    await asyncio.sleep(seconds)
    meter.stop()
    alive = sum(not socket.closed for socket in sockets)
    for socket in [*warm, *sockets]:
        socket.close()
    return [
        Row(
            what=f"idle sockets open of {wanted:,} after {seconds:.0f} s, one web process", unit="sockets", median=alive
        ),
        Row(what="memory each, web process", unit="kB", median=each / 1e3),
        Row(
            what="CPU of the web process while all idle",
            unit="% of a core",
            median=meter.cpu["web"] / seconds * 100,
            goal=GOAL_CPU_PERCENT,
        ),
        Row(what="CPU of Redis while all idle", unit="% of a core", median=meter.cpu["redis"] / seconds * 100),
        row(f"connect to ready, {AT_ONCE} at a time", "ms", milliseconds(times)),
        Row(what="sockets opened a second", unit="1/s", median=len(sockets) / opening),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with running(options) as product:
        return await measure(product, options)
