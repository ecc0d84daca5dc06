"""Redis dies in the middle of turns."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from chat.streams.logs.log import get_log
from chat.streams.reader import close_stream, read
from chat.streams.records import End, Reset
from tests.acceptance.streams.servers import KillableRedis, settings_for
from tests.db.chat.streams.support import Collector, eventually, make_writer, part, records
from tests.stream_consistency import inconsistencies
from thinkproject.kernel.ids import new_id

pytestmark = [pytest.mark.smoke, pytest.mark.django_db(transaction=True)]

STREAMS = 5


class Turns:
    """Some turns that are written at a steady pace, each with a follower."""

    def __init__(self) -> None:
        self.log = get_log()
        self.streams = [new_id("trn") for _ in range(STREAMS)]
        self.is_over = False
        self.written: dict[str, int] = {}
        self.clients = [Collector(stream, self.log, self._over) for stream in self.streams]

    async def _over(self) -> bool:
        return self.is_over

    async def write(self, stream: str, count: int) -> None:
        async with make_writer(stream, self.log) as out:
            for number in range(count):
                out.write(part(number))
                await out.drain()
                self.written[stream] = number
                await asyncio.sleep(0.005)

    async def all_write(self) -> None:
        """Wait until every turn is in the middle: a log that cannot even be opened is another case."""
        await eventually(lambda: len(self.written) == STREAMS and min(self.written.values()) > 10, 15)

    async def finish(self, count: int) -> None:
        """All clients end with the exact stream, and none was asked to start over."""
        self.is_over = True
        for stream in self.streams:
            await close_stream(stream, log=self.log)
        for client in self.clients:
            await asyncio.wait_for(client.task, 10)
            assert client.records == records(count)
            assert client.events[-1] == End(count)
            assert not any(isinstance(event, Reset) for event in client.events)


@pytest.mark.parametrize("persists", [True, False], ids=["with-its-log", "empty"])
async def test_redis_is_killed_and_comes_back(
    make_redis: Callable[..., KillableRedis], settings: Any, persists: bool
) -> None:
    """With its append-only log, and restarted empty: the writer writes again what the database lacks."""
    redis = make_redis(persists=persists)
    settings_for(settings, redis.url)
    turns = Turns()
    count = 600
    writing = [asyncio.create_task(turns.write(stream, count)) for stream in turns.streams]
    await turns.all_write()
    for _ in range(2):
        await asyncio.sleep(0.7)  # it serves for a while
        redis.kill()
        await asyncio.sleep(0.3)  # and is away for a while: turns go on without it
        await asyncio.to_thread(redis.start)
    await asyncio.gather(*writing)
    await turns.finish(count)
    for stream in turns.streams:
        assert await read(stream) == records(count)
        assert await inconsistencies(stream) == []


async def test_nothing_acknowledged_is_lost_when_redis_is_killed(
    make_redis: Callable[..., KillableRedis], settings: Any
) -> None:
    """What `flush` returned for is there after `kill -9`, before anybody writes again; the database had none of it."""
    settings.THINK_STREAM_COLD_SECONDS = 1000.0
    redis = make_redis(persists=True)
    settings_for(settings, redis.url)
    log = get_log()
    acknowledged: dict[str, int] = {}
    writers = [make_writer(new_id("trn"), log) for _ in range(STREAMS)]
    for out in writers:
        await out.__aenter__()
    for number in range(200):
        for out in writers:
            out.write(part(number))
        for out in writers:
            await out.flush()
            acknowledged[out.stream] = out.next_offset
    redis.kill()
    await asyncio.to_thread(redis.start)
    for stream, count in acknowledged.items():
        assert count == 200
        assert list((await log.read(stream, 0, 1000)).records) == records(200)
    for out in writers:
        await out.__aexit__(None, None, None)


async def test_a_turn_goes_on_and_ends_without_redis(make_redis: Callable[..., KillableRedis], settings: Any) -> None:
    redis = make_redis(persists=True)
    settings_for(settings, redis.url)
    turns = Turns()
    writing = [asyncio.create_task(turns.write(stream, 300)) for stream in turns.streams]
    await turns.all_write()
    redis.kill()
    await asyncio.gather(*writing)
    await eventually(lambda: all(len(client.records) == 300 for client in turns.clients), 15)
    await turns.finish(300)
