"""Durable streams: an append, and how long after it all readers have it.

All readers follow one stream over connections of their own; late is the time from the moment before the append is sent
to the event's arrival, on one clock.
"""

import asyncio
import json
import time
from typing import Any

import aiohttp

from bench.rig import Meter, Options, running
from bench.rows import Row, milliseconds, row
from tests.acceptance.product import Product

READERS, APPENDS, FANNED, WRITERS = 1_000, 500, 20, 8
JSON = "application/json"
NO_LIMITS = {"THINK_DURABLE_STREAMS": '{"readers": 100000, "requests_per_minute": 1000000, "sse_seconds": 600}'}


async def follow(session: aiohttp.ClientSession, url: str, opened: asyncio.Event, late: list[list[float]]) -> None:
    """Read events until the stream is closed; notes how late each message came."""
    async with session.get(url) as reply:
        assert reply.status == 200, await reply.text()
        async for line in reply.content:
            if line.startswith(b"data:["):
                now = time.perf_counter()
                late.append([now - message["at"] for message in json.loads(line[5:])])
            elif b"upToDate" in line:
                opened.set()
            if b"streamClosed" in line:
                return


async def append(session: aiohttp.ClientSession, url: str, value: Any) -> float:
    """Seconds that one append takes."""
    began = time.perf_counter()
    async with session.post(url, data=json.dumps(value), headers={"Content-Type": JSON}) as reply:
        assert reply.status == 204, await reply.text()
    return time.perf_counter() - began


async def appends(session: aiohttp.ClientSession, url: str, count: int) -> list[float]:
    """Seconds of each of so many appends, one after another."""
    async with session.put(url, headers={"Content-Type": JSON}) as reply:
        assert reply.status in {200, 201}
    return [await append(session, url, {"at": time.perf_counter(), "number": number}) for number in range(count)]


async def abreast(session: aiohttp.ClientSession, root: str, count: int) -> list[float]:
    """Seconds of each append where several writers of one person have a stream each: they wait for its row."""
    each = [appends(session, f"{root}{number}", count // WRITERS) for number in range(WRITERS)]
    return [seconds for found in await asyncio.gather(*each) for seconds in found]


async def fan_out(session: aiohttp.ClientSession, url: str, readers: int, count: int) -> list[float]:
    """The delay of each of so many messages at each reader. Errors: one that a reader did not get."""
    async with session.put(url, headers={"Content-Type": JSON}) as reply:
        assert reply.status == 201
    late: list[list[list[float]]] = [[] for _ in range(readers)]
    opened = [asyncio.Event() for _ in range(readers)]
    source = f"{url}?offset=-1&live=sse"
    reading = [asyncio.create_task(follow(session, source, *each)) for each in zip(opened, late, strict=True)]
    await asyncio.gather(*(each.wait() for each in opened))
    for number in range(count):
        await append(session, url, {"at": time.perf_counter(), "number": number})
        await asyncio.sleep(0.2)  # the pace of the writer
    async with session.post(url, headers={"Stream-Closed": "true"}) as reply:
        assert reply.status == 204
    await asyncio.gather(*reading)
    found = [value for reader in late for batch in reader for value in batch]
    assert len(found) == readers * count, f"{len(found)} of {readers * count} messages came"
    return found


async def measure(product: Product, options: Options) -> list[Row]:
    """Run everything against a product that is up."""
    readers, count = (20, 20) if options.is_smoke else (READERS, APPENDS)
    root = product.url(f"/v1/stream/bench-{time.time_ns()}-")
    headers = {"Authorization": f"Bearer {product.token('alice')}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=aiohttp.ClientTimeout(None)) as http:
        alone = await appends(http, root + "alone", count)
        several = await abreast(http, root + "abreast-", max(count, WRITERS))
        few = await fan_out(http, root + "one", 1, min(count, FANNED))
        meter = Meter.of(product)
        meter.start()
        many = await fan_out(http, root + "many", readers, min(count, FANNED))
        meter.stop()
    events = len(many)
    return [
        row("append of one message, one after another", "ms", milliseconds(alone)),
        row(f"append by {WRITERS} writers at once, each to a stream of its own", "ms", milliseconds(several)),
        row("append to one reader", "ms", milliseconds(few)),
        row(f"append to {readers:,} readers of one stream", "ms", milliseconds(many)),
        Row(what="- CPU of the web process for each event", unit="µs", median=meter.cpu["web"] / events * 1e6),
        Row(what="- memory at most: web", unit="MB", median=meter.peak["web"] / 1e6),
    ]


async def run(options: Options) -> list[Row]:
    """Start what is needed and measure."""
    with running(options, environ=NO_LIMITS) as product:
        return await measure(product, options)
