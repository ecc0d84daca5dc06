"""Readers: every record once and in order, whatever happens between them and the writer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from chat.streams import reader
from chat.streams.logs.log import close_logs, get_log
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.logs.port import StreamLog
from chat.streams.logs.redis_connection import Command
from chat.streams.logs.redis_log import RedisLog
from chat.streams.reader import close_stream, follow, follow_new, read
from chat.streams.records import Append, AppendResult, CaughtUp, End, Record, Reset
from chat.streams.writing import writer
from tests.db.chat.streams.support import (
    Collector,
    FlakyLog,
    always,
    append_of,
    eventually,
    make_writer,
    never,
    part,
    records,
    text_of,
    wipe,
)
from thinkproject.kernel.ids import new_id

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quick")]


class Over:
    """Whether the turn is final, and how often a user asked."""

    def __init__(self) -> None:
        self.is_over = False
        self.asked = 0

    async def __call__(self) -> bool:
        self.asked += 1
        return self.is_over


async def write(stream: str, log: StreamLog, start: int, stop: int, **options: Any) -> None:
    async with make_writer(stream, log, **options) as out:
        assert out.next_offset == start
        for number in range(start, stop):
            out.write(part(number))


async def test_a_follower_gets_what_is_stored_then_what_comes(log: StreamLog, stream: str) -> None:
    over = Over()
    await write(stream, log, 0, 5)
    async with Collector(stream, log, over) as client:
        await client.until(5)
        async with make_writer(stream, log, fence=2) as out:
            for number in range(5, 9):
                out.write(part(number))
                await out.flush()
        over.is_over = True
        await close_stream(stream, log=log)
        await asyncio.wait_for(client.task, 15)
    assert client.records == records(9)
    assert [type(event) for event in client.events[:2]] == [list, CaughtUp]
    assert client.events[-1] == End(9)


async def test_a_follower_starts_at_its_offset(log: StreamLog, stream: str) -> None:
    await write(stream, log, 0, 10)
    async with Collector(stream, log, always, offset=7) as client:
        await asyncio.wait_for(client.task, 15)
    assert client.records == records(3, start=7)


async def test_a_turn_without_chunks_ends(log: StreamLog, stream: str) -> None:
    async with Collector(stream, log, always) as client:
        await asyncio.wait_for(client.task, 15)
    assert client.events == [End(0)]


async def test_a_final_turn_is_read_from_the_database_alone(log: StreamLog, stream: str) -> None:
    await write(stream, log, 0, 50)
    await wipe(log)
    async with Collector(stream, log, always) as client:
        await asyncio.wait_for(client.task, 15)
    assert client.records == records(50)
    assert await read(stream, 20, log=log) == records(30, start=20)


async def test_long_streams_come_in_pages(log: StreamLog, stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAGE_RECORDS", 7)
    await write(stream, log, 0, 40)
    async with Collector(stream, log, always) as client:
        await asyncio.wait_for(client.task, 15)
    assert client.records == await read(stream, log=log) == records(40)
    assert max(len(event) for event in client.events if isinstance(event, list)) == 7


async def test_the_two_tiers_are_read_as_one(log: StreamLog, stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hot log starts at 90, the database ends at 95, pages end in the middle of both."""
    monkeypatch.setattr(writer, "HOT_RECORDS", 5)
    monkeypatch.setattr(writer, "TRIM_STEP", 1)
    out = make_writer(stream, log)
    await out.__aenter__()
    for number in range(95):
        out.write(part(number))
    await out.flush_cold()
    for number in range(95, 100):
        out.write(part(number))
        await out.flush()
    assert (await log.read(stream, 0, 100)).records[0].offset > 50
    for page in (3, 1000):
        monkeypatch.setattr(reader, "PAGE_RECORDS", page)
        for offset in (0, 49, 93, 94, 95, 96, 99, 100):
            assert await read(stream, offset, log=log) == records(100 - offset, start=offset)
    await out.__aexit__(None, None, None)


async def test_the_notification_of_close_stream_ends_a_follower_at_once(
    log: StreamLog, stream: str, settings: Any
) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 60.0
    over = Over()
    await write(stream, log, 0, 2)
    async with Collector(stream, log, over) as client:
        await client.until(2)
        over.is_over = True
        await close_stream(stream, log=log)
        await asyncio.wait_for(client.task, 15)
    assert client.has_ended


async def test_a_lost_notification_costs_no_more_than_the_idle_time(log: StreamLog, stream: str) -> None:
    over = Over()
    await write(stream, log, 0, 2)
    async with Collector(stream, log, over) as client:
        await client.until(2)
        over.is_over = True
        await asyncio.wait_for(client.task, 15)
    assert client.has_ended


async def test_a_running_turn_is_not_asked_about_while_it_streams(log: StreamLog, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 1.0
    over = Over()
    async with make_writer(stream, log) as out, Collector(stream, log, over) as client:
        for number in range(20):
            out.write(part(number))
            await asyncio.sleep(0.01)
        await client.until(20)
    assert over.asked == 0


async def test_a_turn_accepted_just_now_is_looked_for_once_and_then_comes_live(
    log: StreamLog, stream: str, settings: Any
) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 30.0  # no silence in between
    over, flaky = Over(), FlakyLog(log)
    async with Collector(stream, flaky, over, watch=follow_new) as client:
        await eventually(lambda: flaky.reads == 1)
        await write(stream, log, 0, 5)
        await client.until(5)
        assert (client.records, flaky.reads, over.asked) == (records(5), 1, 0)
        over.is_over = True
        await close_stream(stream, log=log)
        await asyncio.wait_for(client.task, 5)
    assert client.has_ended
    assert client.records == records(5)


async def test_a_new_turn_that_has_begun_meanwhile_is_read_from_its_beginning(log: StreamLog, stream: str) -> None:
    await write(stream, log, 0, 5)
    async with Collector(stream, log, never, watch=follow_new) as client:
        await client.until(5)
        async with make_writer(stream, log, fence=2) as out:
            out.write(part(5))
        await client.until(6)
    assert client.records == records(6)


async def test_a_new_turn_that_ends_without_a_word_is_noticed_after_silence(log: StreamLog, stream: str) -> None:
    async with Collector(stream, log, always, watch=follow_new) as client:
        await asyncio.wait_for(client.task, 5)
    assert client.has_ended
    assert client.records == []


async def test_without_the_hot_log_a_new_turn_is_asked_about_at_once(
    log: StreamLog, stream: str, settings: Any
) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 30.0
    await write(stream, log, 0, 5)
    flaky = FlakyLog(log)
    flaky.is_down = True
    async with Collector(stream, flaky, always, watch=follow_new) as client:
        await asyncio.wait_for(client.task, 5)
    assert client.records == records(5)


@pytest.mark.parametrize("queue", [1, 4])
async def test_a_slow_reader_with_a_queue_of_one_gets_every_record(log: StreamLog, stream: str, queue: int) -> None:
    """The channel layer's silent drop, as a test: here overflow means reading again."""
    over = Over()
    async with Collector(stream, log, over) as quick, Collector(stream, log, over, queue_batches=queue) as client:
        client.pause_seconds = 0.03
        async with make_writer(stream, log) as out:
            for number in range(200):
                out.write(part(number))
                if number % 2:
                    await out.flush()
        await quick.until(200)  # it waits for no one
        assert (quick.records, client.task.done()) == (records(200), False)
        over.is_over = True
        await asyncio.wait_for(client.task, 20)
    assert client.records == records(200)
    assert len(client.events) < 150  # it did fall behind


class MuteLog(RedisLog):
    """Stores every batch and announces only some: the others' PUBLISH goes to no one."""

    def __init__(self, url: str, is_mute: Callable[[int], bool]) -> None:
        super().__init__(url)
        self._is_mute = is_mute
        self._count = 0
        self.muted = 0

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self._count += 1
        if not self._is_mute(self._count):
            return await super().append(appends)
        self.muted += 1
        return await self._append_elsewhere(appends)

    async def _append_elsewhere(self, appends: Sequence[Append]) -> list[AppendResult]:
        call = self._call

        async def redirected(calls: list[Command]) -> list[Any]:
            return await call([(*command[:5], "nobody", *command[6:]) for command in calls])

        self._call = redirected  # type: ignore[method-assign]  # the point of this double
        try:
            return await super().append(appends)
        finally:
            self._call = call  # type: ignore[method-assign]  # as above


async def test_a_gap_in_what_is_announced_is_read_from_the_log(redis_url: str, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 60.0
    mute = MuteLog(redis_url, lambda count: count in {3, 5, 6})
    async with Collector(stream, mute) as client, make_writer(stream, mute) as out:
        for number in range(8):
            out.write(part(number))
            await out.flush()
            await asyncio.sleep(0.02)
        await client.until(8)
    assert mute.muted == 3
    assert client.records == records(8)
    assert [len(event) for event in client.events if isinstance(event, list)] == [1, 1, 2, 3, 1]
    await mute.aclose()


async def test_silence_after_a_lost_announcement_is_read_from_the_log(redis_url: str, stream: str) -> None:
    mute = MuteLog(redis_url, lambda _count: True)
    async with Collector(stream, mute) as client, make_writer(stream, mute) as out:
        for number in range(3):
            out.write(part(number))
        await client.until(3, seconds=3)
    assert client.records == records(3)
    await mute.aclose()


async def test_doubled_batches_are_dropped(log: StreamLog, stream: str) -> None:
    async with Collector(stream, log) as client:
        opened = await log.open(stream, fence=1, floor=0)
        await log.append([append_of(stream, opened.epoch, 0, 2)])
        await client.until(2)
        async with log.subscribe(stream, 10):
            await log.append([append_of(stream, opened.epoch, 2, 2)])
            await log.append([append_of(stream, opened.epoch, 0, 6, is_rewrite=True)])
        await client.until(6)
    assert client.records == records(6)


async def test_an_offset_beyond_the_end_starts_over(log: StreamLog, stream: str) -> None:
    await write(stream, log, 0, 5)
    async with Collector(stream, log, always, offset=9) as client:
        await asyncio.wait_for(client.task, 15)
    assert isinstance(client.events[0], Reset)
    assert client.records == records(5)


async def test_another_epoch_starts_over(log: StreamLog, stream: str) -> None:
    await write(stream, log, 0, 5)
    async with Collector(stream, log, never, offset=5, epoch="of another life") as client:
        await client.until(5)
    epoch = (await log.read(stream, 0, 1)).epoch
    assert client.events[0] == Reset(epoch)
    assert (client.records, client.events[-1]) == (records(5), CaughtUp(5, epoch))


async def test_the_same_epoch_goes_on(log: StreamLog, stream: str) -> None:
    await write(stream, log, 0, 5)
    epoch = (await log.read(stream, 0, 1)).epoch
    async with Collector(stream, log, always, offset=5, epoch=epoch) as client:
        await asyncio.wait_for(client.task, 15)
    assert client.events == [CaughtUp(5, epoch), End(5)]


async def test_a_takeover_after_a_loss_starts_followers_over(log: StreamLog, stream: str) -> None:
    """They saw records that are gone; the new attempt gives their offsets to other words."""
    over = Over()
    async with Collector(stream, log, over) as client:
        first = make_writer(stream, log)
        await first.__aenter__()
        first.write(part(0))
        await first.flush_cold()
        for number in (101, 102):
            first.write(part(number))
        await first.flush()
        await client.until(3)
        await wipe(log)  # and the worker dies with it
        async with make_writer(stream, log, fence=2) as second:
            assert second.start_offset == 1
            for number in range(1, 5):
                second.write(part(number))
            await second.flush()
            await eventually(lambda: client.records == records(5))
        over.is_over = True
        await asyncio.wait_for(client.task, 15)
    assert sum(isinstance(event, Reset) for event in client.events) == 1
    assert client.records == records(5)


async def test_a_rewrite_by_the_same_writer_is_invisible(log: StreamLog, stream: str) -> None:
    async with make_writer(stream, log) as out, Collector(stream, log) as client:
        for number in range(20):
            if number in {5, 12}:
                await wipe(log)
            out.write(part(number))
            await out.flush()
        await client.until(20)
    assert client.records == records(20)
    assert not any(isinstance(event, Reset) for event in client.events)


async def test_a_follower_lives_without_the_hot_log(log: StreamLog, stream: str) -> None:
    flaky = FlakyLog(log)
    over = Over()
    await write(stream, log, 0, 3)
    flaky.is_down = True
    async with Collector(stream, flaky, over) as client:
        await client.until(3)
        await write(stream, log, 3, 6, fence=2)
        await client.until(6)
        over.is_over = True
        await asyncio.wait_for(client.task, 15)
    assert client.records == records(6)


async def test_the_end_waits_for_what_only_the_database_has(log: StreamLog, stream: str) -> None:
    """Redis was away at the end of the turn and came back with what it had: its end is not the end."""
    flaky = FlakyLog(log)
    async with make_writer(stream, flaky) as out:
        out.write(part(0))
        await out.flush_cold()
        flaky.is_down = True
        for number in range(1, 5):
            out.write(part(number))
        await out.flush_cold()
    assert (await log.read(stream, 0, 10)).next_offset == 1
    async with Collector(stream, log, always) as client:
        await asyncio.wait_for(client.task, 15)
    assert client.records == records(5)


async def test_closing_archives_what_a_dead_worker_left(log: StreamLog, stream: str) -> None:
    dead = make_writer(stream, log)
    await dead.__aenter__()
    for number in range(5):
        dead.write(part(number))
        if number == 2:
            await dead.flush_cold()
    await dead.flush()
    for _ in range(2):
        await close_stream(stream, log=log)
    await wipe(log)
    assert await read(stream, log=log) == records(5)


async def test_closing_without_the_hot_log_raises_nothing(log: StreamLog, stream: str) -> None:
    flaky = FlakyLog(log)
    flaky.is_down = True
    await close_stream(stream, log=flaky)


async def test_leaving_early_unsubscribes(stream: str) -> None:
    log = MemoryLog()
    await write(stream, log, 0, 3)
    events = follow(stream, is_over=never, log=log)
    assert await anext(events) == records(3)
    assert stream in log._followers
    await events.aclose()
    assert stream not in log._followers


async def test_many_followers_of_many_streams(log: StreamLog) -> None:
    names = [new_id("trn") for _ in range(10)]
    over: Callable[[], Awaitable[bool]] = never
    clients = [Collector(name, log, over) for name in names for _ in range(3)]
    await asyncio.gather(*(write(name, log, 0, 50) for name in names))
    for client in clients:
        await client.until(50)
        assert client.records == records(50)
        await client.stop()


async def test_the_setting_decides_which_log_is_used(settings: Any, redis_url: str) -> None:
    settings.REDIS_URL = ""
    assert isinstance(get_log(), MemoryLog)
    settings.REDIS_URL = redis_url
    assert isinstance(get_log(), RedisLog)
    assert get_log() is get_log()
    await close_logs()


async def test_a_follower_of_an_emptied_idle_log_gets_everything(log: StreamLog, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.2
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    async with make_writer(stream, log) as out:
        for number in range(3):
            out.write(part(number))
        await out.flush()
        await wipe(log)  # the writer does not notice before it writes again
        async with Collector(stream, log, never) as client:
            await client.until(3)
            assert client.records == records(3)
            out.write(part(3))
            await client.until(4)
            assert client.records == records(4)


async def test_a_reader_of_lost_words_is_reset_even_if_the_hot_log_is_lost_again(log: StreamLog, stream: str) -> None:
    first = make_writer(stream, log)
    await first.__aenter__()
    for number in range(4):
        first.write(part(number))
        if number == 1:
            await first.flush_cold()
    await first.flush()  # a user sees 2 and 3; then worker and Redis are lost together
    await wipe(log)
    async with make_writer(stream, log, fence=2) as second:
        for number in (12, 13, 14):
            second.write(part(number))
    await wipe(log)
    async with Collector(stream, log, always, offset=4, epoch=first.epoch) as client:
        await eventually(lambda: client.has_ended)
    assert client.records == [*records(2), *(Record(at, text_of(at + 10)) for at in (2, 3, 4))]
