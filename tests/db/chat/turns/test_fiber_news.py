"""Open pages of the owner are notified when background work begins, ends, or is decided about."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels.layers import get_channel_layer

from chat.instances.notifications import list_group
from chat.think import Think
from fibers.models import Fiber
from fibers.testing import run_until_idle
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)

Hear = Callable[[], Awaitable[Any]]


class Announcing(Think):
    """Has background work."""

    async def work(self) -> str:
        return "done"


@asynccontextmanager
async def page_of(room: Room) -> AsyncIterator[Hear]:
    """An open page of the owner's: what it hears next."""
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(list_group(room.key.owner_id), channel)

    async def hear() -> Any:
        async with asyncio.timeout(15):
            return await layer.receive(channel)

    yield hear
    await layer.group_discard(list_group(room.key.owner_id), channel)


async def test_a_page_hears_of_the_start_the_beginning_and_the_end(make_room: MakeRoom) -> None:
    room = make_room("announcing")
    async with page_of(room) as hear:
        await room.handle.start_fiber("work")
        scope, owner = (await db(Fiber.objects.get)).scope, str(room.key.owner_id)
        news = {"type": "conversation.changed", "instance_id": scope, "owner": owner}
        assert await hear() == news
        await run_until_idle()
        assert [await hear(), await hear()] == [news, news]


@pytest.mark.parametrize("change", ["cancel", "restart", "resolve"])
async def test_a_page_hears_of_each_decision(make_room: MakeRoom, change: str) -> None:
    room = make_room("announcing")
    fiber_id = (await room.handle.start_fiber("work")).id
    async with page_of(room) as hear:
        if change == "cancel":
            assert await room.handle.cancel_fiber(fiber_id)
        else:
            await db(Fiber.objects.update, status="interrupted")
            if change == "restart":
                await room.handle.restart_fiber(fiber_id)
            else:
                assert await room.handle.resolve_fiber(fiber_id, "completed")
        assert (await hear())["type"] == "conversation.changed"
