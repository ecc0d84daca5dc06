"""What is Redis' alone: keys, scripts, expiry, and what a restart means."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from chat.streams.errors import LogUnavailable
from chat.streams.logs.redis_log import ABANDONED_SECONDS, READ_CONNECTIONS, RedisLog, keys_of
from chat.streams.logs.redis_subscriber import channel_of
from chat.streams.records import StreamOutcome
from tests.db.chat.streams.support import append_of, records, texts


async def test_records_have_explicit_ids_one_above_their_offsets(redis_log: RedisLog, redis_client: Redis) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 3)])
    entries = await redis_client.xrange("think:{trn_x}:log")
    assert entries == [(f"0-{number + 1}", {"d": text}) for number, text in enumerate(texts(3))]


async def test_keys_and_channel_of_a_stream_share_a_slot(redis_client: Redis) -> None:
    names = [*keys_of("trn_x"), channel_of("trn_x")]
    assert all("{trn_x}" in name for name in names)
    assert len(set(names)) == 3


async def test_one_batch_is_one_message(redis_log: RedisLog, redis_client: Redis) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    async with redis_client.pubsub() as subscriber:
        await subscriber.subscribe(channel_of("trn_x"))
        await subscriber.get_message(timeout=15)
        await redis_log.append([append_of("trn_x", opened.epoch, 0, 3)])
        message = await subscriber.get_message(timeout=15)
        assert message is not None
        assert message["data"] == "\n".join([f"{opened.epoch} 0", *texts(3)])
        assert await subscriber.get_message(timeout=0.05) is None


async def test_scripts_are_loaded_again_after_a_flush(redis_log: RedisLog, redis_client: Redis) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    for first in (0, 2):
        await redis_client.script_flush()
        batch = [append_of("trn_x", opened.epoch, first, 1), append_of("trn_x", opened.epoch, first + 1, 1)]
        assert [answer.outcome for answer in await redis_log.append(batch)] == [StreamOutcome.APPENDED] * 2
    assert list((await redis_log.read("trn_x", 0, 10)).records) == records(4)


async def test_a_closed_stream_expires_after_the_retention(
    redis_log: RedisLog, redis_client: Redis, settings: Any
) -> None:
    settings.THINK_STREAM_HOT_RETENTION_SECONDS = 77
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 3, is_rewrite=True)])
    for key in keys_of("trn_x"):
        assert ABANDONED_SECONDS - 5 <= await redis_client.ttl(key) <= ABANDONED_SECONDS
    await redis_log.close("trn_x")
    for key in keys_of("trn_x"):
        assert 70 <= await redis_client.ttl(key) <= 77


async def test_a_takeover_on_the_same_server_keeps_the_epoch(redis_log: RedisLog) -> None:
    one = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", one.epoch, 0, 3)])
    two = await redis_log.open("trn_x", fence=2, floor=0)
    assert one.epoch == two.epoch


async def test_a_takeover_after_a_restart_of_the_server_begins_a_new_epoch(
    redis_log: RedisLog, redis_client: Redis
) -> None:
    """It may have lost its last second after readers had seen it; no one can know."""
    one = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", one.epoch, 0, 3)])
    await redis_client.hset(keys_of("trn_x")[1], "run", "of the server before")
    assert (await redis_log.open("trn_x", fence=1, floor=0)).epoch == one.epoch  # the writer itself came back
    await redis_client.hset(keys_of("trn_x")[1], "run", "of the server before")
    two = await redis_log.open("trn_x", fence=2, floor=0)
    assert (two.epoch != one.epoch, two.next_offset) == (True, 3)


async def test_a_writer_that_rewrites_after_a_restart_keeps_the_epoch_for_its_heirs(
    redis_log: RedisLog, redis_client: Redis
) -> None:
    one = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_client.hset(keys_of("trn_x")[1], "run", "of the server before")
    await redis_log.append([append_of("trn_x", one.epoch, 0, 3, is_rewrite=True)])
    assert (await redis_log.open("trn_x", fence=2, floor=0)).epoch == one.epoch


async def test_an_evicted_log_is_not_trusted(redis_log: RedisLog, redis_client: Redis) -> None:
    one = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", one.epoch, 0, 6)])
    await redis_client.delete(keys_of("trn_x")[0])
    two = await redis_log.open("trn_x", fence=2, floor=4)
    assert (two.next_offset, two.tail, two.epoch != one.epoch) == (4, (), True)


async def test_a_full_server_leaves_the_log_as_it_was(redis_log: RedisLog, redis_client: Redis) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 3)])
    await redis_client.config_set("maxmemory", 1)
    try:
        with pytest.raises(LogUnavailable):
            await redis_log.append([append_of("trn_x", opened.epoch, 3, 2)])
        with pytest.raises(LogUnavailable):
            await redis_log.append([append_of("trn_x", opened.epoch, 0, 5, is_rewrite=True)])
    finally:
        await redis_client.config_set("maxmemory", 0)
    slice_ = await redis_log.read("trn_x", 0, 10)
    assert (list(slice_.records), slice_.next_offset) == (records(3), 3)
    answer = (await redis_log.append([append_of("trn_x", opened.epoch, 0, 5, is_rewrite=True)]))[0]
    assert answer.outcome is StreamOutcome.APPENDED
    assert list((await redis_log.read("trn_x", 0, 10)).records) == records(5)


async def test_a_large_tail_is_handed_over(redis_log: RedisLog) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 20_000)])
    assert len((await redis_log.open("trn_x", fence=2, floor=1)).tail) == 19_999


async def test_a_reader_that_was_cancelled_leaves_no_answer_to_another(
    redis_log: RedisLog, redis_client: Redis
) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 3)])
    await redis_client.client_pause(150)
    readers = [asyncio.create_task(redis_log.read("trn_x", 0, 2)) for _ in range(READ_CONNECTIONS)]
    await asyncio.sleep(0.05)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert [len((await redis_log.read("trn_x", 1, 1)).records) for _ in range(READ_CONNECTIONS)] == [1] * 16


@pytest.mark.parametrize("offset", [-5, 2**64, 99_999_999_999_999_999_999])
async def test_an_error_inside_a_transaction_is_no_page(redis_log: RedisLog, offset: int) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 3)])
    with pytest.raises(LogUnavailable):
        await redis_log.read("trn_x", offset, 10)
    assert list((await redis_log.read("trn_x", 0, 10)).records) == records(3)


@pytest.mark.parametrize("broken", [0, 1])
async def test_a_key_of_another_type_is_no_answer(redis_log: RedisLog, redis_client: Redis, broken: int) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    await redis_log.append([append_of("trn_x", opened.epoch, 0, 3)])
    await redis_client.set(keys_of("trn_x")[broken], "text")
    with pytest.raises(LogUnavailable):
        await redis_log.read("trn_x", 0, 10)
    with pytest.raises(LogUnavailable):
        await redis_log.append([append_of("trn_x", opened.epoch, 3, 2)])
    if broken == 1:
        with pytest.raises(LogUnavailable):
            await redis_log.close("trn_x")


async def test_a_missing_server_is_reported() -> None:
    log = RedisLog("unix:///nowhere/r.sock")
    with pytest.raises(LogUnavailable):
        await log.open("trn_x", fence=1, floor=0)
    with pytest.raises(LogUnavailable):
        await log.read("trn_x", 0, 1)
    with pytest.raises(LogUnavailable):
        await log.close("trn_x")
    await asyncio.wait_for(log.aclose(), 15)
