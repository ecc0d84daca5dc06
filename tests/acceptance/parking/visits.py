"""Visits of a person who asks and leaves, and what becomes of it while no client is connected."""

import asyncio
import random
from typing import Any

from tests.acceptance.product import Product, wait_for
from tests.chaos.lines import Line, user_message


def beside(product: Product, function: str, room: str) -> Any:
    return product.call(f"tests.acceptance.parking.beside:{function}", room)


async def say(product: Product, room: str, text: str, *, agent: str = "notary") -> None:
    """Ask, see it begin, and leave: no client is connected afterwards."""
    url = product.url(f"/agents/{agent}/{room}?token={product.token('alice')}").replace("http", "ws", 1)
    line = Line(room, room, url, random.Random(1))
    try:
        assert await line.wait(lambda: line.is_open, seconds=20)
        await line.ask([user_message(text)])
        await asyncio.to_thread(
            wait_for, lambda: beside(product, "standing", room)["status"] != "", what=f"{room} having begun"
        )
    finally:
        await line.close()


async def ended(product: Product, room: str) -> None:
    await asyncio.to_thread(
        wait_for, lambda: beside(product, "standing", room)["status"] == "completed", what=f"{room} having ended"
    )
