"""The check of a stream's invariants finds what it is for."""

from collections.abc import Callable

import pytest

from chat.models import StreamSegment
from chat.streams.logs import database_log
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.records import Record
from tests.db.chat.streams.support import append_of, make_writer, part, records
from tests.stream_consistency import inconsistencies
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


def lose_the_first_segment(stream: str, _log: MemoryLog) -> None:
    StreamSegment.objects.filter(stream=stream, first_offset=0).delete()


def lose_a_middle_segment(stream: str, _log: MemoryLog) -> None:
    StreamSegment.objects.filter(stream=stream, first_offset=5).delete()


def lose_the_last_segment(stream: str, log: MemoryLog) -> None:
    StreamSegment.objects.filter(stream=stream, first_offset=10).delete()
    log._states[stream].base = 12
    del log._states[stream].texts[:12]


def change_a_record(stream: str, log: MemoryLog) -> None:
    log._states[stream].texts[3] = '"other"'


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lose_the_first_segment, "cold log starts at 5"),
        (lose_a_middle_segment, "cold log has holes or repeats"),
        (lose_the_last_segment, "records 10 to 11 are in no tier"),
        (change_a_record, "record 3 differs between tiers"),
    ],
)
async def test_what_is_broken_is_reported(break_it: Callable[[str, MemoryLog], None], said: str) -> None:
    log = MemoryLog()
    async with make_writer("trn_x", log) as out:
        for number in range(15):
            out.write(part(number))
            if number % 5 == 4:
                await out.flush_cold()
    assert await inconsistencies("trn_x", log=log) == []
    await db(break_it, "trn_x", log)
    assert said in await inconsistencies("trn_x", log=log)


async def test_a_stream_that_is_nowhere_is_consistent() -> None:
    assert await inconsistencies("trn_x", log=MemoryLog()) == []


async def test_the_archive_of_two_at_once_is_one(stream: str) -> None:
    log = MemoryLog()
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 4)])
    await db(database_log.archive, stream, [])
    await db(database_log.archive, stream, records(4))
    await db(database_log.archive, stream, [*records(4), Record(4, '"late"')])
    assert await inconsistencies(stream, log=log) == []
