"""The shared subscriber: one connection, repaired when lost, subscriptions counted."""

import asyncio
import time
from contextlib import AsyncExitStack
from functools import partial

import pytest
from redis.asyncio import Redis

from chat.streams.logs import redis_subscriber
from chat.streams.logs.redis_log import RedisLog
from chat.streams.logs.redis_subscriber import channel_of
from tests.db.chat.streams.support import append_of, eventually, records


async def subscribers(client: Redis, stream: str) -> int:
    count: int = (await client.pubsub_numsub(channel_of(stream)))[0][1]
    return count


async def test_followers_share_one_connection(redis_log: RedisLog, redis_client: Redis) -> None:
    async with AsyncExitStack() as stack:
        for number in range(30):
            await stack.enter_async_context(redis_log.subscribe(f"trn_{number % 10}", 10))
        assert [await subscribers(redis_client, f"trn_{number}") for number in range(10)] == [1] * 10
        assert len(await redis_client.client_list(_type="pubsub")) == 1


async def test_a_join_returns_with_the_subscription_in_place(redis_log: RedisLog, redis_client: Redis) -> None:
    async def join(name: str) -> int:
        async with redis_log.subscribe(name, 10):
            return await subscribers(redis_client, name)

    assert await asyncio.gather(*(join(f"trn_{number}") for number in range(50))) == [1] * 50


async def test_the_last_follower_unsubscribes_after_a_grace(
    redis_log: RedisLog, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_subscriber, "GRACE_SECONDS", 0.1)

    async def is_gone(stream: str) -> bool:
        return await subscribers(redis_client, stream) == 0

    async with redis_log.subscribe("trn_x", 10):
        async with redis_log.subscribe("trn_x", 10):
            pass
        async with redis_log.subscribe("trn_later", 10):
            pass
        await eventually(partial(is_gone, "trn_later"))  # who left "trn_x" before would be gone as well
        assert await subscribers(redis_client, "trn_x") == 1
    assert await subscribers(redis_client, "trn_x") == 1
    await eventually(partial(is_gone, "trn_x"))


async def test_leaving_and_joining_at_once_keeps_the_subscription(
    redis_log: RedisLog, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The UNSUBSCRIBE of who left must not overtake the SUBSCRIBE of who came."""
    monkeypatch.setattr(redis_subscriber, "GRACE_SECONDS", 0.0)
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    for round_ in range(30):
        async with redis_log.subscribe("trn_x", 10):
            pass
        for _ in range(round_ % 6):
            await asyncio.sleep(0)
        async with redis_log.subscribe("trn_x", 10) as subscription:
            await asyncio.sleep(0.002)
            subscription.clear()
            await redis_log.append([append_of("trn_x", opened.epoch, round_, 1)])
            assert (await subscription.wait(15)).batches, round_


async def test_a_lost_connection_is_made_again_and_followers_re_read(redis_log: RedisLog, redis_client: Redis) -> None:
    opened = await redis_log.open("trn_x", fence=1, floor=0)
    async with redis_log.subscribe("trn_x", 10) as subscription:
        subscription.clear()
        await redis_client.client_kill_filter(_type="pubsub")
        assert (await subscription.wait(15)).must_reread
        await redis_log.append([append_of("trn_x", opened.epoch, 0, 1)])
        assert (await subscription.wait(15)).batches[0].records == records(1)


async def test_a_silent_connection_is_asked_and_given_up(
    redis_log: RedisLog, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_subscriber, "PING_SECONDS", 0.1)
    monkeypatch.setattr(redis_subscriber, "ACK_SECONDS", 0.6)
    async with redis_log.subscribe("trn_x", 10) as subscription:
        subscription.clear()
        first = (await redis_client.client_list(_type="pubsub"))[0]["id"]
        await asyncio.sleep(0.8)  # longer than a ping and the time that its answer has
        assert (await redis_client.client_list(_type="pubsub"))[0]["id"] == first  # it answers pings
        await redis_client.client_pause(1500)
        assert (await subscription.wait(15)).must_reread
        await redis_client.client_unpause()
        assert (await redis_client.client_list(_type="pubsub"))[0]["id"] != first


async def test_a_join_without_a_server_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_subscriber, "ACK_SECONDS", 0.2)
    log = RedisLog("unix:///nowhere/r.sock")
    began = time.monotonic()
    async with log.subscribe("trn_x", 10) as subscription:
        assert time.monotonic() - began < 5
        assert (await subscription.wait(0.05)).is_silence
    await log.aclose()


@pytest.mark.long
async def test_a_quiet_subscriber_keeps_its_connection(redis_log: RedisLog, redis_client: Redis) -> None:
    """redis-py's own default would give up after five seconds."""
    async with redis_log.subscribe("trn_x", 10) as subscription:
        subscription.clear()
        first = (await redis_client.client_list(_type="pubsub"))[0]["id"]
        assert (await subscription.wait(6)).is_silence
        assert (await redis_client.client_list(_type="pubsub"))[0]["id"] == first
