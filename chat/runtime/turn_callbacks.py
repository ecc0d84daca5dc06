"""Start a turn from server code and wait for its end: its chunks to a callback, a signal that stops it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeAlias

from chat.agent.base import InstanceKey
from chat.core.durable_names import TURN_FIBER
from chat.errors import NestedTurn, TurnNotFound
from chat.instances.notifications import group_of
from chat.models import Turn
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.streams.reader import follow
from chat.streams.records import Reset
from chat.turns.admission.admission import TurnRequest, admit, cancel_turn
from chat.turns.state.caller_calls import CallerTools, serving
from chat.turns.state.status import TurnStatus
from fibers.context import current_fiber
from fibers.core.states import Interrupt
from thinkproject.kernel.aio import call_user_code, db
from tools_app.core.guard.reach import is_reading, note_here
from tools_app.guard.standings import texts_of

Callback: TypeAlias = Callable[..., Any] | None


def is_inside_turn(key: InstanceKey) -> bool:
    """Whether this code runs inside a turn of this conversation."""
    fiber = current_fiber()
    return fiber is not None and fiber.name == TURN_FIBER and fiber.metadata.get("address") == group_of(key)


def refuse_nesting(key: InstanceKey) -> None:
    """Refuse a turn that would wait for itself. Errors: `NestedTurn`."""
    if is_inside_turn(key):
        raise NestedTurn


async def run_turn(
    key: InstanceKey,
    request: TurnRequest,
    *,
    callback: Any,
    signal: asyncio.Event | None,
    supply_input: Callable[[Turn], Awaitable[None]] | None = None,
    tools: CallerTools | None = None,
) -> TurnRef:
    """Admit a turn and wait for its end; the chunks go to the callback as they come. Setting `signal` stops the turn.

    `supply_input` is awaited for a turn whose input is not known yet. `tools` run here when they are called.
    Errors: those of admission and of `supply_input`; `NestedTurn` from inside a turn of the same conversation;
    `TurnNotFound` when the conversation is deleted meanwhile.
    """
    refuse_nesting(key)
    if tools:
        request = replace(request, options={**request.options, "caller_tools": tools.declarations})
    turn = (await db(admit, key, request)).turn
    await call_back(callback, "on_start", turn.request_id)
    async with _stopping_on(signal, turn.pk), _stopping_with_caller(key, turn.pk), serving(key, turn, tools):
        if supply_input is not None:
            await supply_input(turn)
        await _deliver(turn.pk, callback)
    ended = await db(snapshots.find_turn, key, turn_id=turn.pk)
    if ended is None:
        raise TurnNotFound("The conversation was deleted while the turn ran.")
    if is_reading():  # the caller is a call of another conversation, and may return the answer there
        for _, text in await db(texts_of, ended.session_id):
            note_here(text.origin, text.source)
    return ended


async def report_end(callback: Any, ended: TurnRef) -> None:
    """Give the end of a turn to a callback: `on_done`, or `on_error` with the text; nothing after a stop."""
    if ended.status is TurnStatus.COMPLETED:
        await call_back(callback, "on_done")
    elif ended.status is TurnStatus.ERROR:
        await call_back(callback, "on_error", ended.error_text)


async def _deliver(turn_id: str, callback: Any) -> None:
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


@asynccontextmanager
async def _stopping_on(signal: asyncio.Event | None, turn_id: str) -> AsyncIterator[None]:
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


@asynccontextmanager
async def _stopping_with_caller(key: InstanceKey, turn_id: str) -> AsyncIterator[None]:
    """Stop a sub-agent's turn when the turn above it that waits for it here is stopped."""
    try:
        yield
    except asyncio.CancelledError:
        fiber = current_fiber()
        above = {group_of(ancestor) for ancestor in key.ancestors}
        if fiber is not None and fiber.interrupt is Interrupt.CANCEL and fiber.metadata.get("address") in above:
            await db(cancel_turn, turn_id)
        raise


async def call_back(callback: Any, name: str, *args: Any) -> None:
    """Call a method of a callback, if it has it: an async one here, a sync one on a thread for developers' code."""
    method: Callback = getattr(callback, name, None)
    if method is None:
        return
    await call_user_code(method, *args)


async def _stop_on(signal: asyncio.Event, turn_id: str) -> None:
    await signal.wait()
    await db(cancel_turn, turn_id)
