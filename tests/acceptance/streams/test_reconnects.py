"""Many clients that come and go while other processes write, and die."""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from chat.streams.logs.log import get_log
from chat.streams.reader import follow
from chat.streams.records import End, Reset
from tests.acceptance.streams.servers import KillableRedis, Producer, settings_for
from tests.db.chat.streams.support import records
from tests.stream_consistency import inconsistencies
from thinkproject.kernel.ids import new_id

pytestmark = pytest.mark.django_db(transaction=True)

TURNS, CHUNKS, CLIENTS = 10, 800, 30


async def never() -> bool:
    return False


async def restless_client(stream: str, chance: random.Random, stats: dict[str, int]) -> list[str]:
    """Read with a new connection every moment, each time from the offset after the last record."""
    got: list[str] = []
    while len(got) < CHUNKS:
        stats["connections"] += 1
        try:
            async with asyncio.timeout(chance.uniform(0.02, 0.4)):
                async with aclosing(follow(stream, len(got), is_over=never)) as events:
                    async for event in events:
                        assert not isinstance(event, Reset | End)
                        if isinstance(event, list):
                            assert event[0].offset == len(got)
                            got += [record.text for record in event]
                            if len(got) >= CHUNKS:
                                break
        except TimeoutError:
            await asyncio.sleep(chance.uniform(0, 0.1))  # a client comes back when it likes
    return got


async def test_thirty_restless_clients_get_exact_sequences(
    make_redis: Callable[..., KillableRedis], make_producer: Callable[..., Producer], settings: Any
) -> None:
    redis = make_redis(persists=True)
    settings_for(settings, redis.url)
    streams = [new_id("trn") for _ in range(TURNS)]
    stats = {"connections": 0}
    seed = random.randrange(1 << 30)
    clients = [restless_client(streams[n % TURNS], random.Random(seed + n), stats) for n in range(CLIENTS)]
    producer = make_producer(redis.url, streams, fence=1, count=CHUNKS, pause_seconds=0.005)
    async with asyncio.timeout(60):
        found = await asyncio.gather(*clients)
    expected = [record.text for record in records(CHUNKS)]
    assert all(got == expected for got in found), f"seed {seed}"
    assert stats["connections"] > 5 * CLIENTS
    assert await asyncio.to_thread(producer.wait) == 0


async def test_a_killed_worker_is_followed_by_another(
    make_redis: Callable[..., KillableRedis], make_producer: Callable[..., Producer], settings: Any
) -> None:
    """`kill -9` in the middle of ten turns: nothing acknowledged is lost, clients notice nothing but a pause."""
    redis = make_redis(persists=True)
    settings_for(settings, redis.url)
    streams = [new_id("trn") for _ in range(TURNS)]
    stats = {"connections": 0}
    clients = [
        asyncio.create_task(restless_client(streams[n % TURNS], random.Random(n), stats)) for n in range(CLIENTS)
    ]
    fence = 0
    for stop in (200, 500):
        fence += 1
        acknowledged = dict.fromkeys(streams, 0)
        producer = make_producer(redis.url, streams, fence=fence, count=CHUNKS, pause_seconds=0.005)
        while max(acknowledged.values()) < stop:
            name, _, count = (await asyncio.to_thread(producer.read_line)).partition(" ")
            acknowledged[name] = int(count)
        producer.kill()
        for stream, safe in acknowledged.items():
            following = (await get_log().read(stream, 0, 1)).next_offset
            assert following is not None
            assert following >= safe
    last = make_producer(redis.url, streams, fence=fence + 1, count=CHUNKS, pause_seconds=0.002)
    async with asyncio.timeout(60):
        found = await asyncio.gather(*clients)
    assert all(got == [record.text for record in records(CHUNKS)] for got in found)
    assert await asyncio.to_thread(last.wait) == 0
    for stream in streams:
        assert await inconsistencies(stream) == []
