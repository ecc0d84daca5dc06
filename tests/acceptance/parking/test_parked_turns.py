"""Workers that end, killed or stopped, while a turn is parked or has just gone on: the answer completes, once."""

import asyncio
import random
from typing import Any

import pytest

from tests.acceptance.product import Product, wait_for
from tests.chaos.lines import Line, text_of, user_message

ASK = "call tool ask_person {} id=one\nsay: It says {result}."
WORDS = 120
ASK_AND_TALK = f"call tool ask_person {{}} id=one\nstream {WORDS} words at 20/s"


def standing(product: Product, room: str) -> dict[str, Any]:
    found: dict[str, Any] = product.call("tests.acceptance.parking.beside:standing", room)
    return found


def answer(product: Product, room: str) -> bool:
    return bool(product.call("tests.acceptance.parking.beside:answer", room, "Friday"))


async def until(product: Product, room: str, *statuses: str) -> None:
    await asyncio.to_thread(
        wait_for, lambda: standing(product, room)["status"] in statuses, what=f"{room} being {statuses}"
    )


async def park(product: Product, agent: str, text: str) -> tuple[Line, str]:
    """Ask for a turn that waits; returns the client and the request."""
    url = product.url(f"/agents/{agent}/{agent}?token={product.token('alice')}").replace("http", "ws", 1)
    line = Line(agent, agent, url, random.Random(1))
    assert await line.wait(lambda: line.is_open, seconds=20)
    request = await line.ask([user_message(text)])
    await until(product, agent, "parked")
    return line, request


async def finished(product: Product, line: Line, request: str) -> dict[str, Any]:
    assert await line.wait(lambda: request in line.ended, seconds=90), f"no end; held: {line.text(request)!r}"
    assert line.ended[request] == "completed"
    await until(product, line.room, "completed")
    return standing(product, line.room)


def is_no_crash(line: Line, end: dict[str, Any]) -> None:
    assert "cf_agent_chat_recovering" not in line.kinds
    assert (end["recoveries"], end["recovery_heard"]) == (0, None)
    assert (end["calls"], end["resumed"]) == (1, 1)


@pytest.mark.parametrize("agent", ["waiter", "fragile-waiter"])
async def test_a_worker_killed_while_a_turn_is_parked_is_no_crash_of_the_turn(own_product: Product, agent: str) -> None:
    line, request = await park(own_product, agent, ASK)
    try:
        await asyncio.to_thread(own_product.workers[0].restart)
        assert answer(own_product, agent)
        assert not answer(own_product, agent)
        end = await finished(own_product, line, request)
        assert line.text(request) == "It says Friday."
        is_no_crash(line, end)
    finally:
        await line.close()


@pytest.mark.parametrize("agent", ["waiter", "fragile-waiter"])
async def test_a_worker_stopped_while_a_turn_is_parked_changes_nothing(own_product: Product, agent: str) -> None:
    line, request = await park(own_product, agent, ASK)
    try:
        assert await asyncio.to_thread(own_product.workers[0].stop) == 0
        assert answer(own_product, agent)
        own_product.workers[0].start()
        end = await finished(own_product, line, request)
        assert line.text(request) == "It says Friday."
        is_no_crash(line, end)
    finally:
        await line.close()


async def test_a_worker_stopped_when_a_turn_has_just_gone_on_hands_it_back(own_product: Product) -> None:
    line, request = await park(own_product, "waiter", ASK_AND_TALK)
    try:
        assert answer(own_product, "waiter")
        await until(own_product, "waiter", "running")
        assert await asyncio.to_thread(own_product.workers[0].stop) == 0
        assert standing(own_product, "waiter")["status"] == "pending"
        own_product.workers[0].start()
        await finished(own_product, line, request)
        assert len(line.text(request).split()) == WORDS
        assert text_of(line.transcript[-1]) == line.text(request)
    finally:
        await line.close()
