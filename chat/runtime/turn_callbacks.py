"""Following a turn from server code: its chunks to a callback, a signal that stops it, its end. For who waits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeAlias

from chat.agent.base import InstanceKey
from chat.core.durable_names import TURN_FIBER
from chat.errors import NestedTurn, TurnNotFound
from chat.instances.notifications import group_of
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.streams.reader import follow
from chat.streams.records import Reset
from chat.turns.admission.admission import cancel_turn
from fibers.context import current_fiber
from thinkproject.kernel.aio import call_user_code, db

Callback: TypeAlias = Callable[..., Any] | None


def is_inside_turn(key: InstanceKey) -> bool:
    """Whether this code runs inside a turn of this conversation."""
    fiber = current_fiber()
    return fiber is not None and fiber.name == TURN_FIBER and fiber.metadata.get("address") == group_of(key)


def refuse_nesting(key: InstanceKey) -> None:
    """Refuse what would wait for itself. Errors: `NestedTurn`."""
    if is_inside_turn(key):
        raise NestedTurn


async def deliver(turn_id: str, callback: Any) -> None:
    """Give the chunks of a turn to a callback as they come; returns when the turn is over."""

    async def is_over() -> bool:
        return await db(snapshots.is_final, turn_id)

    async with aclosing(follow(turn_id, 0, is_over=is_over)) as events:
        async for event in events:
            if isinstance(event, list):
                for record in event:
                    await call_back(callback, "on_event", record.text)
            elif isinstance(event, Reset):
                await call_back(callback, "on_reset")


async def how_it_ended(key: InstanceKey, turn_id: str) -> TurnRef:
    """Read the end of a turn. Errors: `TurnNotFound` when the conversation is gone."""
    ended = await db(snapshots.find_turn, key, turn_id=turn_id)
    if ended is None:
        raise TurnNotFound("The conversation was deleted while the turn ran.")
    return ended


@asynccontextmanager
async def stopping_on(signal: asyncio.Event | None, turn_id: str) -> AsyncIterator[None]:
    """Stop the turn when the signal is set, until the end of the block."""
    if signal is None:
        yield
        return
    listener = asyncio.create_task(_stop_on(signal, turn_id))
    try:
        yield
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener


async def call_back(callback: Any, name: str, *args: Any) -> None:
    """Call a method of a callback, if it has it: an async one here, a sync one on a thread for developers' code."""
    method: Callback = getattr(callback, name, None)
    if method is None:
        return
    await call_user_code(method, *args)


async def _stop_on(signal: asyncio.Event, turn_id: str) -> None:
    await signal.wait()
    await db(cancel_turn, turn_id)
