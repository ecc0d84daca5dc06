"""A hundred conversations at fifty chunks a second, answered again and again: what a chunk costs, its turn included.

Each answer has two hundred words, so twenty-five turns begin and end in each second. `bench.delivery` has none of that.
"""

import asyncio
import time

from bench.chats import Asked, Received, greeted_all, lateness, one_turn, read_log
from bench.rig import Meter, Options, running, socket_urls
from bench.rows import Row, milliseconds, row
from bench.sockets import Socket
from tests.acceptance.product import Product

TURNS, RATE, WORDS = 100, 50, 200
LONG_WORDS = 1_000
"""A hundred sessions with a thousand chunks each: what the durable-state RFC asks its streams to carry."""
SECONDS = 12.0
GOAL_CPU_US = 150.0
GOAL_LATE_MS = 100.0


async def converse(sockets: list[Socket], seconds: float, words: int, received: Received) -> list[Asked]:
    """Ask in each conversation as soon as it was answered; what has begun is waited for."""
    asked: list[Asked] = []
    until = time.monotonic() + seconds

    async def one(at: int, socket: Socket) -> None:
        await asyncio.sleep(at * words / RATE / len(sockets))
        number = 0
        while number == 0 or time.monotonic() < until:
            marker = f"load{words}-{at}-{number}"
            asked.append((socket, marker, await one_turn(socket, marker, received, words=words, rate=RATE)))
            number += 1

    await asyncio.gather(*(one(at, socket) for at, socket in enumerate(sockets)))
    return asked


async def measure(product: Product, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    if options.is_smoke:
        return await _measure(product, "load", turns=5, words=20, seconds=1.0)
    often = await _measure(product, "load", turns=TURNS, words=WORDS, seconds=min(options.seconds, SECONDS))
    return [*often, *await _measure(product, "long", turns=TURNS, words=LONG_WORDS, seconds=0.0)]


async def _measure(product: Product, name: str, *, turns: int, words: int, seconds: float) -> list[Row]:
    """Each conversation is answered as often as it can be in so many seconds, at least once."""
    sockets = await greeted_all(socket_urls(product, name, turns))
    received, meter = Received(), Meter.of(product)
    meter.start()
    began = time.monotonic()
    asked = await converse(sockets, seconds, words, received)
    took = time.monotonic() - began
    meter.stop()
    log = await read_log(product.provider_log)
    late, chunks, broken = lateness(asked, log, words)
    for socket in sockets:
        socket.close()
    first = [came_at - sent_at for sent_at, came_at in received.turns.values()]
    load = f"{turns} × {RATE}/s, {words} words a turn"
    return [
        Row(
            what=f"{load}: CPU a chunk, all of the product",
            unit="µs",
            median=meter.own / chunks * 1e6,
            goal=GOAL_CPU_US,
        ),
        *(Row(what=f"- {name}", unit="µs", median=spent / chunks * 1e6) for name, spent in meter.cpu.items()),
        row("a chunk from the provider to the client", "ms", milliseconds(late), goal=GOAL_LATE_MS, goal_on="p99"),
        row("frame to first word, the provider's 20 ms included", "ms", milliseconds(first)),
        Row(what="all of it, the beginnings spread over one answer's length", unit="s", median=took),
        Row(what="turns ended in a second", unit="1/s", median=len(asked) / took),
        Row(what="turns cut, or whose text differs from the provider's", unit="turns", median=broken, goal=0),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with running(options) as product:
        return await measure(product, options)
