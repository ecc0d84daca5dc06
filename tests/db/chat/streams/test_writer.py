"""The writer: nothing lost, nothing doubled, in both tiers, whatever fails for a while."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
from django.db import OperationalError, transaction

from chat.core.wire import chunks
from chat.streams.errors import Fenced
from chat.streams.logs import database_log
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.logs.port import StreamLog
from chat.streams.reader import read
from chat.streams.records import Record
from chat.streams.writing import writer
from fibers.errors import LeaseLost
from tests.db.chat.streams.support import FlakyLog, eventually, make_writer, part, records, texts, wipe
from tests.stream_consistency import inconsistencies
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


async def stored(stream: str) -> list[Record]:
    return await db(database_log.cold_records, stream, 0, 10_000)


async def holds(stream: str, count: int) -> bool:
    return await db(database_log.next_cold_offset, stream) == count


async def hot(log: StreamLog, stream: str) -> list[Record]:
    return list((await log.read(stream, 0, 10_000)).records)


async def test_chunks_get_offsets_without_gaps_in_both_tiers(log: StreamLog, stream: str) -> None:
    async with make_writer(stream, log) as out:
        for number in range(100):
            out.write(part(number))
            if number % 7 == 0:
                await asyncio.sleep(0)
        assert out.next_offset == 100
    assert await read(stream, log=log) == await stored(stream) == await hot(log, stream) == records(100)
    assert await inconsistencies(stream, log=log) == []


async def test_deltas_of_one_moment_are_one_record(log: StreamLog, stream: str) -> None:
    async with make_writer(stream, log) as out:
        for word in ["one", "two", "three"]:
            out.write(chunks.text_delta("t1", word))
        await out.flush()
        out.write(chunks.text_delta("t1", "four"))
    assert [record.text.split('"')[-2] for record in await read(stream, log=log)] == ["onetwothree", "four"]


async def test_a_step_commits_with_its_record_and_its_offsets(log: StreamLog, stream: str) -> None:
    ranges: list[range] = []
    async with make_writer(stream, log) as out:
        for count in (3, 0, 5):
            for _ in range(count):
                out.write(part(out.next_offset))
            await out.flush_cold(ranges.append)
            assert len(await stored(stream)) == out.next_offset
    assert ranges == [range(3), range(3, 3), range(3, 8)]


async def test_a_step_whose_record_fails_leaves_no_segment(log: StreamLog, stream: str) -> None:
    def refuse(_offsets: range) -> None:
        raise LeaseLost

    async with make_writer(stream, log) as out:
        out.write(part(0))
        with pytest.raises(LeaseLost):
            await out.flush_cold(refuse)
        assert await stored(stream) == []
        await out.flush_cold()
        assert await stored(stream) == records(1)


@pytest.mark.timeout(10)
async def test_records_reach_the_database_by_themselves(log: StreamLog, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.05
    async with make_writer(stream, log) as out:
        for number in range(3):
            out.write(part(number))
            await eventually(lambda: holds(stream, out.next_offset))


async def test_a_boundary_brings_the_database_up_to_date(log: StreamLog, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 100
    async with make_writer(stream, log) as out:
        out.write(part(0))
        await out.flush()
        await asyncio.sleep(0.15)  # three times as long as after a boundary: nothing else would show an early commit
        assert await stored(stream) == []
        out.write(chunks.text_end("t0"))
        await eventually(lambda: holds(stream, 2))


async def test_a_writer_that_lost_the_fence_gets_an_error(log: StreamLog, stream: str) -> None:
    old = make_writer(stream, log)
    await old.__aenter__()
    old.write(part(0))
    await old.flush()
    async with make_writer(stream, log, fence=2) as new:
        new.write(part(1))
    old.write(part(99))
    with pytest.raises(Fenced):
        await old.flush()
    with pytest.raises(LeaseLost):
        old.write(part(100))
    with pytest.raises(Fenced):
        await old.__aexit__(None, None, None)
    assert await read(stream, log=log) == records(2)


async def test_a_lower_fence_cannot_open(log: StreamLog, stream: str) -> None:
    async with make_writer(stream, log, fence=5):
        pass
    with pytest.raises(Fenced):
        async with make_writer(stream, log, fence=4):
            pass


async def test_a_lease_lost_in_the_database_is_raised_at_the_next_call(log: StreamLog, stream: str) -> None:
    def lost() -> AbstractContextManager[None]:
        raise LeaseLost

    out = make_writer(stream, log, ctx_fenced=lost)
    await out.__aenter__()
    out.write(chunks.text_end("t0"))
    await eventually(lambda: out._failure is not None)
    with pytest.raises(LeaseLost):
        out.write(part(1))
    with pytest.raises(LeaseLost):
        await out.flush_cold()
    with pytest.raises(LeaseLost):
        await out.drain()
    with pytest.raises(LeaseLost):
        await out.__aexit__(None, None, None)


async def test_a_takeover_goes_on_after_the_last_readable_record(log: StreamLog, stream: str) -> None:
    first = make_writer(stream, log)
    await first.__aenter__()
    for number in range(4):
        first.write(part(number))
        if number == 1:
            await first.flush_cold()
    await first.flush()  # and dies here: 2 and 3 are in the hot log alone
    async with make_writer(stream, log, fence=2) as second:
        assert (second.start_offset, second.next_offset) == (4, 4)
        second.write(part(4))
        await second.flush()
        await wipe(log)
        second.write(part(5))
    assert await read(stream, log=log) == records(6)
    assert await stored(stream) == records(6)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_takeover_knows_what_came_before_though_the_hot_log_is_lost(
    log: StreamLog, stream: str, is_lost: bool
) -> None:
    first = make_writer(stream, log)
    await first.__aenter__()
    for number in range(4):
        first.write(part(number))
        if number == 1:
            await first.flush_cold()
    await first.flush()  # and dies here
    async with make_writer(stream, log, fence=2) as second:
        if is_lost:
            await wipe(log)
        assert await second.former_records() == texts(4)
        second.write(part(4))
    assert await stored(stream) == records(5)
    async with make_writer(stream, log, fence=3) as third:
        assert await third.former_records() == texts(5)


async def test_an_emptied_log_gets_back_what_the_database_lacks(log: StreamLog, stream: str) -> None:
    async with make_writer(stream, log) as out:
        for number in range(10):
            out.write(part(number))
            if number == 4:
                await out.flush_cold()
        await out.flush()
        epoch = out.epoch
        await wipe(log)
        assert await hot(log, stream) == []
        out.write(part(10))
        await out.flush()
        assert await hot(log, stream) == records(6, start=5)
        assert (out.epoch, await read(stream, log=log)) == (epoch, records(11))
    assert await inconsistencies(stream, log=log) == []


async def test_without_the_hot_log_the_database_takes_over(log: StreamLog, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.05
    flaky = FlakyLog(log)
    async with make_writer(stream, flaky) as out:
        out.write(part(0))
        await out.flush()
        flaky.is_down = True
        for number in range(1, 40):
            out.write(part(number))
            await out.drain()
            await asyncio.sleep(0.02)
        await out.flush_cold()
        assert out.is_hot_down
        assert await stored(stream) == records(40)
        assert await read(stream, log=flaky) == records(40)
        flaky.is_down = False
        assert await read(stream, log=flaky) == records(40)
        out.write(part(40))
        await eventually(lambda: not out.is_hot_down)
    assert await read(stream, log=log) == records(41)
    assert await inconsistencies(stream, log=log) == []


async def test_an_append_whose_answer_is_lost_is_not_doubled(log: StreamLog, stream: str) -> None:
    flaky = FlakyLog(log)
    async with make_writer(stream, flaky) as out:
        for number in range(30):
            flaky.lost_answers = number % 3 == 0
            out.write(part(number))
            await out.flush()
    assert flaky.appends > 30
    assert await hot(log, stream) == records(30)


async def test_a_commit_whose_answer_is_lost_is_not_doubled(log: StreamLog, stream: str) -> None:
    deaf_moments: list[str] = []

    @contextmanager
    def deaf() -> Iterator[None]:
        with ExitStack() as stack:
            stack.callback(lose_the_answer)
            stack.enter_context(transaction.atomic())
            yield

    def lose_the_answer() -> None:
        if deaf_moments:
            raise OperationalError("the connection went away after the commit")

    async with make_writer(stream, log, ctx_fenced=deaf) as out:
        out.write(part(0))
        deaf_moments.append("now")
        with pytest.raises(OperationalError):
            await out.flush_cold()
        deaf_moments.clear()
        out.write(part(1))
    assert await stored(stream) == records(2)


async def test_a_database_that_fails_is_tried_again(log: StreamLog, stream: str, settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.05
    failures = 3

    @contextmanager
    def moody() -> Iterator[None]:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OperationalError("database is locked")
        with transaction.atomic():
            yield

    async with make_writer(stream, log, ctx_fenced=moody) as out:
        out.write(part(0))
        await eventually(lambda: holds(stream, 1))
        assert await stored(stream) == records(1)


async def test_drain_waits_while_no_tier_takes_anything(
    stream: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING", 10)
    is_down, tries = True, 0
    flaky = FlakyLog(MemoryLog())

    @contextmanager
    def moody() -> Iterator[None]:
        nonlocal tries
        tries += 1
        if is_down:
            raise OperationalError("no database")
        with transaction.atomic():
            yield

    async with make_writer(stream, flaky, ctx_fenced=moody) as out:
        flaky.is_down = True
        for number in range(11):
            assert not out.is_full
            out.write(part(number))
        assert out.is_full
        waiting = asyncio.create_task(out.drain())
        await eventually(lambda: tries > 2 and flaky.appends > 2)
        assert not waiting.done()
        is_down = False
        await asyncio.wait_for(waiting, 15)
        assert await stored(stream) == records(11)


async def test_a_cancelled_turn_keeps_what_it_wrote(log: StreamLog, stream: str) -> None:
    ready = asyncio.Event()

    async def turn() -> None:
        async with make_writer(stream, log) as out:
            for number in range(20):
                out.write(part(number))
            ready.set()
            await asyncio.sleep(60)  # until it is cancelled

    task = asyncio.create_task(turn())
    await ready.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert await hot(log, stream) == await stored(stream) == records(20)


async def test_the_hot_log_keeps_its_last_records_and_loses_none(
    log: StreamLog, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HOT_RECORDS", 50)
    monkeypatch.setattr(writer, "TRIM_STEP", 20)
    async with make_writer(stream, log) as out:
        for number in range(400):
            out.write(part(number))
            if number % 10 == 0:
                await out.flush()
            if number % 100 == 0:
                trimmed = (await hot(log, stream))[0].offset
                assert trimmed <= await db(database_log.next_cold_offset, stream)  # the database holds what is gone
            if number == 300:
                await out.flush_cold()
    kept = await hot(log, stream)
    assert 50 <= len(kept) <= 80 + 100
    assert kept[-1].offset == 399
    assert await read(stream, log=log) == records(400)
    assert await inconsistencies(stream, log=log) == []


async def test_shown_and_progress_count_content(log: StreamLog, stream: str) -> None:
    progress: list[int] = []
    async with make_writer(stream, log, on_progress=progress.append) as out:
        out.write(chunks.start("msg_1"))
        out.write(chunks.text_start("t1"))
        assert not out.shown
        out.write(chunks.text_delta("t1", "a"))
        out.write(chunks.text_delta("t1", "b"))
        assert (out.shown, progress) == (True, [1, 1])
        await out.flush_cold(lambda _offsets: None)
        assert not out.shown
