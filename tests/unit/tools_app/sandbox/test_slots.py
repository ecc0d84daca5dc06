"""How many scripts run at a time, and who is next."""

import asyncio

import pytest

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.slots import FairSlots


async def _hold(slots: FairSlots, share: str, order: list[str], release: asyncio.Event) -> None:
    async with slots.slot(share, seconds=10):
        order.append(share)
        await release.wait()


async def test_one_user_leaves_room_for_another() -> None:
    slots, release = FairSlots(total=3, per_share=2), asyncio.Event()
    order: list[str] = []
    tasks = [asyncio.create_task(_hold(slots, share, order, release)) for share in ["a", "a", "a", "a", "b"]]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["a", "a", "b"]
    release.set()
    await asyncio.gather(*tasks)
    assert sorted(order) == ["a", "a", "a", "a", "b"]
    assert slots.running == 0


async def test_who_waits_too_long_is_told() -> None:
    slots = FairSlots(total=1, per_share=1)
    async with slots.slot("a", seconds=1):
        with pytest.raises(SandboxUnavailable):
            async with slots.slot("b", seconds=0.01):
                raise AssertionError
    async with slots.slot("b", seconds=1):
        assert slots.running == 1


async def test_who_gives_up_takes_no_slot() -> None:
    slots, release = FairSlots(total=1, per_share=1), asyncio.Event()
    order: list[str] = []
    first = asyncio.create_task(_hold(slots, "a", order, release))
    await asyncio.sleep(0)
    second = asyncio.create_task(_hold(slots, "b", order, release))
    third = asyncio.create_task(_hold(slots, "c", order, release))
    await asyncio.sleep(0)
    second.cancel()
    release.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert order == ["a", "c"]
    assert slots.running == 0
