"""What is published for the clients of an instance, as a web server receives it."""

import asyncio
from typing import Any

from channels.layers import get_channel_layer

from chat.agent.base import InstanceKey
from chat.instances.notifications import group_of
from thinkproject.kernel.jsonvalue import JSONObject


async def listen(key: InstanceKey) -> tuple[Any, str]:
    """A channel for the notifications of an instance from now on."""
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(group_of(key), channel)
    return layer, channel


async def notification_of(listening: tuple[Any, str], kind: str) -> JSONObject:
    """The next notification of a kind."""
    layer, channel = listening
    async with asyncio.timeout(15):
        while True:
            notification: JSONObject = await layer.receive(channel)
            if notification["type"] == kind:
                return notification


async def kinds_until(listening: tuple[Any, str], kind: str) -> list[str]:
    """The kinds of all notifications up to the next one of a kind."""
    layer, channel = listening
    kinds: list[str] = []
    async with asyncio.timeout(15):
        while kind not in kinds:
            kinds.append((await layer.receive(channel))["type"])
    return kinds
