"""A follower's queue: bounded, and honest about what it dropped."""

import asyncio

from chat.streams.logs.subscription import Subscription
from chat.streams.records import Published, Record


def batch(first: int) -> Published:
    return Published("e", [Record(first, "{}")])


async def test_batches_come_in_order() -> None:
    subscription = Subscription(10)
    subscription.push(batch(0))
    subscription.push(batch(1))
    received = await subscription.wait(15)
    assert received.batches == [batch(0), batch(1)]
    assert not received.must_reread


async def test_a_batch_wakes_who_waits() -> None:
    subscription = Subscription(10)
    waiting = asyncio.create_task(subscription.wait(10))
    await asyncio.sleep(0)
    subscription.push(batch(0))
    assert (await asyncio.wait_for(waiting, 15)).batches == [batch(0)]
    subscription.stop()


async def test_overflow_drops_to_a_re_read() -> None:
    subscription = Subscription(1)
    for number in range(3):
        subscription.push(batch(number))
    received = await subscription.wait(15)
    assert (received.batches, received.must_reread) == ([], True)
    subscription.push(batch(3))
    assert (await subscription.wait(15)).batches == [batch(3)]


async def test_an_interruption_outlives_what_comes_after_it() -> None:
    subscription = Subscription(10)
    subscription.push(batch(0))
    subscription.interrupt()
    subscription.push(batch(1))
    assert await subscription.wait(15) == ([], True, False)


async def test_silence_ends_the_wait_and_only_silence() -> None:
    subscription = Subscription(10)
    loop = asyncio.get_running_loop()
    for number in range(4):
        waiting = asyncio.create_task(subscription.wait(0.05))
        await asyncio.sleep(0)
        subscription.push(batch(number))
        assert (await waiting).batches == [batch(number)]
    began = loop.time()
    assert (await subscription.wait(0.15)).is_silence
    assert loop.time() - began >= 0.14, "the time of an earlier wait is not its own"
    subscription.stop()


async def test_the_notification_of_a_closed_stream_is_received_once() -> None:
    subscription = Subscription(10)
    subscription.wake()
    assert (await subscription.wait(15)).is_closed
    assert (await subscription.wait(0.01)).is_silence
    subscription.stop()
