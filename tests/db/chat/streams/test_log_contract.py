"""What every hot log does: Redis and the memory of a process pass the same suite."""

import asyncio

import pytest

from chat.streams.errors import Fenced
from chat.streams.logs.port import StreamLog
from chat.streams.records import AppendResult, Record, StreamOutcome
from tests.db.chat.streams.support import append_of, records, texts


async def test_an_unknown_stream_is_empty(log: StreamLog, stream: str) -> None:
    slice_ = await log.read(stream, 0, 10)
    assert (slice_.epoch, slice_.next_offset, slice_.records, slice_.is_closed) == (None, None, (), False)


async def test_records_are_read_back_under_their_offsets(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    assert (opened.next_offset, opened.tail) == (0, ())
    answers = await log.append([append_of(stream, opened.epoch, 0, 5)])
    assert answers == [AppendResult(StreamOutcome.APPENDED, opened.epoch)]
    slice_ = await log.read(stream, 2, 2)
    assert list(slice_.records) == records(2, start=2)
    assert (slice_.next_offset, slice_.epoch) == (5, opened.epoch)


async def test_text_comes_back_byte_for_byte(log: StreamLog, stream: str) -> None:
    odd = '{"type":"text-delta","id":"t","delta":"\\u0000 \\ud800 ü 🙂 \u2028 \\n %s {x}"}'
    opened = await log.open(stream, fence=1, floor=0)
    async with log.subscribe(stream, 10) as subscription:
        subscription.clear()
        await log.append([append_of(stream, opened.epoch, 0, 1, texts=[odd, odd])])
        received = await subscription.wait(15)
    assert (await log.read(stream, 0, 10)).records == (Record(0, odd), Record(1, odd))
    assert received.batches[0].records == [Record(0, odd), Record(1, odd)]


async def test_many_streams_are_appended_at_once(log: StreamLog) -> None:
    names = [f"trn_{number}" for number in range(20)]
    epochs = {name: (await log.open(name, fence=1, floor=0)).epoch for name in names}
    said = {name: [f'"{name} says {number}"' for number in range(2)] for name in names}
    answers = await log.append([append_of(name, epochs[name], 0, 2, texts=said[name]) for name in names])
    assert [answer.outcome for answer in answers] == [StreamOutcome.APPENDED] * 20
    for name in names:
        slice_ = await log.read(name, 0, 10)
        assert ([record.text for record in slice_.records], slice_.next_offset) == (said[name], 2)


async def test_a_lower_fence_is_refused(log: StreamLog, stream: str) -> None:
    old = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, old.epoch, 0, 3)])
    new = await log.open(stream, fence=2, floor=0)
    assert (new.epoch, new.next_offset, list(new.tail)) == (old.epoch, 3, texts(3))
    answers = await log.append([append_of(stream, old.epoch, 3, 1)])
    assert answers[0].outcome is StreamOutcome.FENCED
    assert (await log.append([append_of(stream, old.epoch, 0, 4, is_rewrite=True)]))[0].outcome is StreamOutcome.FENCED
    with pytest.raises(Fenced):
        await log.open(stream, fence=1, floor=0)
    assert (await log.read(stream, 0, 10)).next_offset == 3


async def test_the_next_offset_of_a_stale_worker_is_refused(log: StreamLog, stream: str) -> None:
    """An explicit id alone would let it in: it is higher than the last one."""
    old = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, old.epoch, 0, 3)])
    new = await log.open(stream, fence=2, floor=0)
    await log.append([append_of(stream, new.epoch, 3, 1, fence=2)])
    answers = await log.append([append_of(stream, old.epoch, 4, 1, texts=['"stale"'])])
    assert answers[0].outcome is StreamOutcome.FENCED
    assert [record.text for record in (await log.read(stream, 0, 10)).records] == texts(4)


@pytest.mark.parametrize("first", [2, 4, 100])
async def test_an_offset_that_is_not_the_next_is_refused(log: StreamLog, stream: str, first: int) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 3)])
    answers = await log.append([append_of(stream, opened.epoch, first, 1)])
    assert answers[0].outcome is StreamOutcome.BEHIND
    assert (await log.read(stream, 0, 10)).next_offset == 3


async def test_another_epoch_is_refused(log: StreamLog, stream: str) -> None:
    await log.open(stream, fence=1, floor=0)
    assert (await log.append([append_of(stream, "other", 0, 1)]))[0].outcome is StreamOutcome.BEHIND
    rewritten = await log.append([append_of(stream, "other", 0, 1, is_rewrite=True)])
    assert rewritten[0].outcome is StreamOutcome.FENCED


async def test_an_append_to_a_lost_stream_is_behind_and_a_rewrite_brings_it_back(log: StreamLog, stream: str) -> None:
    """The writer still holds what it wrote: the same epoch goes on, offsets below are the database's."""
    answers = await log.append([append_of(stream, "epoch", 40, 2)])
    assert answers[0].outcome is StreamOutcome.BEHIND
    answers = await log.append([append_of(stream, "epoch", 30, 12, is_rewrite=True)])
    assert answers == [AppendResult(StreamOutcome.APPENDED, "epoch")]
    slice_ = await log.read(stream, 0, 100)
    assert (list(slice_.records), slice_.next_offset) == (records(12, start=30), 42)


async def test_a_rewrite_skips_what_is_there_and_announces_the_rest(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 5)])
    async with log.subscribe(stream, 10) as subscription:
        subscription.clear()
        rewrite = append_of(stream, opened.epoch, 2, 6, is_rewrite=True)
        assert (await log.append([rewrite, rewrite])) == [AppendResult(StreamOutcome.APPENDED, opened.epoch)] * 2
        received = await subscription.wait(15)
    assert [batch.records for batch in received.batches] == [records(3, start=5)]
    assert list((await log.read(stream, 0, 100)).records) == records(8)


async def test_a_rewrite_that_ends_below_what_is_there_is_refused(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 5)])
    answers = await log.append([append_of(stream, opened.epoch, 0, 3, is_rewrite=True)])
    assert answers[0].outcome is StreamOutcome.FENCED


async def test_a_rewrite_above_the_end_drops_what_is_below(log: StreamLog, stream: str) -> None:
    """After an outage the database has what the hot log never got; a hole inside the hot log is never left."""
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 5)])
    await log.append([append_of(stream, opened.epoch, 20, 2, is_rewrite=True)])
    slice_ = await log.read(stream, 0, 100)
    assert (list(slice_.records), slice_.next_offset) == (records(2, start=20), 22)


async def test_what_a_stale_writer_wrote_into_an_emptied_log_begins_a_new_life(log: StreamLog, stream: str) -> None:
    """Fence 2 took the stream, the log came back empty, fence 1 was first to write again: readers must start over."""
    stale = append_of(stream, "epoch", 0, 3, texts=['"a"', '"b"', '"c"'], is_rewrite=True)
    assert (await log.append([stale]))[0] == AppendResult(StreamOutcome.APPENDED, "epoch")
    assert (await log.append([append_of(stream, "epoch", 2, 1, fence=2)]))[0].outcome is StreamOutcome.BEHIND
    answer = (await log.append([append_of(stream, "epoch", 0, 3, fence=2, is_rewrite=True)]))[0]
    assert answer.outcome is StreamOutcome.APPENDED
    slice_ = await log.read(stream, 0, 10)
    assert slice_.epoch == answer.epoch != "epoch"
    assert list(slice_.records) == records(3)


async def test_opening_hands_over_what_the_database_lacks(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 10)])
    again = await log.open(stream, fence=2, floor=7)
    assert (again.next_offset, list(again.tail), again.epoch) == (10, texts(3, start=7), opened.epoch)


async def test_opening_goes_on_after_the_database_where_that_is_ahead(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 3)])
    again = await log.open(stream, fence=2, floor=9)
    assert (again.next_offset, again.tail) == (9, ())
    assert (await log.append([append_of(stream, again.epoch, 9, 1, fence=2)]))[0].outcome is StreamOutcome.APPENDED
    assert list((await log.read(stream, 0, 10)).records) == records(1, start=9)


async def test_opening_a_lost_stream_begins_a_new_life_after_the_database(log: StreamLog, stream: str) -> None:
    first = await log.open(stream, fence=3, floor=30)
    assert (first.next_offset, first.tail) == (30, ())
    other = await log.open(f"{stream}b", fence=3, floor=30)
    assert first.epoch != other.epoch


async def test_trimming_keeps_offsets(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    await log.append([append_of(stream, opened.epoch, 0, 50)])
    await log.append([append_of(stream, opened.epoch, 50, 1, trim_below=40)])
    slice_ = await log.read(stream, 10, 100)
    assert (list(slice_.records), slice_.next_offset) == (records(11, start=40), 51)
    assert (await log.open(stream, fence=2, floor=45)).tail == tuple(texts(6, start=45))


async def test_a_batch_is_announced_once_to_each_follower(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    async with log.subscribe(stream, 10) as one, log.subscribe(stream, 10) as two, log.subscribe("trn_no", 10) as other:
        for subscription in (one, two, other):
            subscription.clear()
        await log.append([append_of(stream, opened.epoch, 0, 2)])
        for subscription in (one, two):
            received = await subscription.wait(15)
            assert [(batch.epoch, batch.records) for batch in received.batches] == [(opened.epoch, records(2))]
            subscription.stop()  # its timer is that of the long wait
        assert (await other.wait(0.05)).is_silence
        await log.append([append_of(stream, opened.epoch, 7, 1)])
        assert (await one.wait(0.05)).is_silence  # what is refused is announced to no one


async def test_closing_wakes_followers_and_shows_in_reads(log: StreamLog, stream: str) -> None:
    await log.open(stream, fence=1, floor=0)
    async with log.subscribe(stream, 10) as subscription:
        subscription.clear()
        await log.close(stream)
        assert (await subscription.wait(15)).is_closed
    assert (await log.read(stream, 0, 10)).is_closed
    await log.open(stream, fence=2, floor=0)
    assert not (await log.read(stream, 0, 10)).is_closed


async def test_a_follower_that_left_receives_nothing(log: StreamLog, stream: str) -> None:
    opened = await log.open(stream, fence=1, floor=0)
    async with log.subscribe(stream, 10) as subscription:
        subscription.clear()
    await log.append([append_of(stream, opened.epoch, 0, 2)])
    await asyncio.sleep(0.05)
    assert (await subscription.wait(0.01)).is_silence
