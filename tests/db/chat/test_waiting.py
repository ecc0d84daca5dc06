"""Code that waits for rows to change: woken by notifications, repaired by slower and slower looks, cheap in between."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from channels.layers import get_channel_layer

from chat.instances import waiting
from chat.instances.waiting import wait_until

GROUP = "think.turn.test"


class Flag:
    """A condition that counts how often it was asked."""

    def __init__(self) -> None:
        self.holds = False
        self.asked = 0

    async def __call__(self) -> bool:
        self.asked += 1
        return self.holds


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence lasts longer than any test."""
    monkeypatch.setattr(waiting, "FIRST_SILENCE_SECONDS", 3600.0)
    monkeypatch.setattr(waiting, "LONGEST_SILENCE_SECONDS", 3600.0)


async def until(condition: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while True:
            held = condition()
            if held if isinstance(held, bool) else await held:
                return
            await asyncio.sleep(0.005)


async def test_what_holds_already_is_asked_once(no_looks: None) -> None:
    flag = Flag()
    flag.holds = True
    assert await wait_until(flag, group=GROUP)
    assert flag.asked == 1


async def test_a_notification_ends_the_wait(no_looks: None) -> None:
    flag = Flag()
    waiter = asyncio.create_task(wait_until(flag, group=GROUP))
    await until(lambda: flag.asked == 2)  # it listens from before the second time
    flag.holds = True
    await get_channel_layer().group_send(GROUP, {"type": "turn.stepped"})
    async with asyncio.timeout(20):
        assert await waiter
    assert flag.asked == 3


async def test_a_lost_notification_costs_one_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_SILENCE_SECONDS", 0.01)
    flag = Flag()
    waiter = asyncio.create_task(wait_until(flag, group=GROUP))
    await until(lambda: flag.asked == 2)
    flag.holds = True
    async with asyncio.timeout(20):
        assert await waiter


async def test_a_long_silence_is_asked_about_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_SILENCE_SECONDS", 0.001)
    monkeypatch.setattr(waiting, "LONGEST_SILENCE_SECONDS", 100.0)
    flag = Flag()
    assert not await wait_until(flag, group=GROUP, timeout_seconds=0.5)
    assert flag.asked <= 2 + 10  # 2 ** 9 ms and what the limit cuts; looks every millisecond would be hundreds


async def test_it_gives_up_at_its_limit(no_looks: None) -> None:
    began = time.monotonic()
    assert not await wait_until(Flag(), group=GROUP, timeout_seconds=0.05)
    assert time.monotonic() - began >= 0.05


async def test_a_layer_that_cannot_be_reached_leaves_the_looks(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_SILENCE_SECONDS", 0.01)
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [{"address": "redis://127.0.0.1:1/0"}]},
        }
    }
    monkeypatch.setattr(waiting, "_LAYER_SECONDS", 0.1)
    flag = Flag()
    waiter = asyncio.create_task(wait_until(flag, group=GROUP))
    await until(lambda: flag.asked >= 3)
    flag.holds = True
    async with asyncio.timeout(20):
        assert await waiter


async def test_waiters_that_are_cancelled_at_any_moment_leave_the_layer_usable() -> None:
    waiters = [asyncio.create_task(wait_until(Flag(), group=GROUP)) for _ in range(40)]
    for number, waiter in enumerate(waiters):
        for _ in range(number % 8):  # in another step of joining each
            await asyncio.sleep(0)
        waiter.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)
    async with asyncio.timeout(20):
        await until(lambda: not waiting._listening)
    flag = Flag()
    last = asyncio.create_task(wait_until(flag, group=GROUP))
    await until(lambda: flag.asked == 2)
    flag.holds = True
    await get_channel_layer().group_send(GROUP, {"type": "turn.stepped"})
    async with asyncio.timeout(20):
        assert await last
