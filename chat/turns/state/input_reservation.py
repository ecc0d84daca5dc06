"""Reserves a lane position for a caller that computes its messages when the turn starts.

A function cannot be stored, so the turn is admitted without messages and takes its position in the lane. When the
turn starts, its worker waits for the caller. The caller, waiting in its own process, passes the current messages to
the function and stores the returned ones. If the caller is gone, the turn is skipped.
"""

import asyncio
import logging
from typing import Final

from chat.instances.notifications import notify_waiters, turn_group
from chat.instances.waiting import wait_until
from chat.models import Turn, TurnOptions
from chat.turns.state.deferred_input import DEFERRED, change_options, end_not_started
from chat.turns.state.status import SKIPPED_REASON
from fibers.context import FiberContext
from fibers.core.states import TERMINAL, FiberStatus, Interrupt
from fibers.errors import Cancelled
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db

logger = logging.getLogger(__name__)

AWAITS: Final = "awaits_input"
"""Name of the mark in the fiber's metadata."""

CALLED: Final = "called"
"""Name of the mark in the turn's options: the caller is there and calls its function."""

CALLER_SECONDS = 10.0
FUNCTION_SECONDS = 60.0


async def wait_for_input(context: FiberContext, turn_id: str) -> None:
    """Wait for the caller's messages. Free of cost for other turns.

    Errors: `Cancelled`, as skipped without messages or when the caller is gone.
    """
    if not context.metadata.get(AWAITS):
        return
    try:
        given = await _input_of(turn_id)
    except asyncio.CancelledError:
        if context.interrupt is not Interrupt.CANCEL:
            raise
        await db(_end, context, turn_id)
        raise Cancelled from None
    if not given:
        await db(_end, context, turn_id)
        raise Cancelled(reason=SKIPPED_REASON)


async def _input_of(turn_id: str) -> list[Message]:
    """The caller's messages; empty if it is gone or has none."""
    options: TurnOptions = {}

    async def has(*names: str) -> bool:
        options.update(await db(_options, turn_id))
        return any(name in options for name in names)

    await db(notify_waiters, turn_id)  # the turn has its place
    group = turn_group(turn_id)
    is_there = await wait_until(lambda: has(DEFERRED, CALLED), group=group, timeout_seconds=CALLER_SECONDS)
    if is_there:
        await wait_until(lambda: has(DEFERRED), group=group, timeout_seconds=FUNCTION_SECONDS + CALLER_SECONDS)
    if DEFERRED not in options:
        logger.warning("caller of a turn is gone", extra={"action": "turn_caller_gone", "turn_id": turn_id})
    return options.get(DEFERRED, [])


def _options(turn_id: str) -> TurnOptions:
    options: TurnOptions = Turn.objects.filter(pk=turn_id).values_list("options", flat=True).first() or {DEFERRED: []}
    return options


def _end(context: FiberContext, turn_id: str) -> None:
    with context.fenced():
        end_not_started(turn_id)


async def wait_for_place(turn_id: str) -> bool:
    """Wait until the turn has its place and waits for its messages; false when it has ended."""
    status: list[str | None] = []

    async def is_decided() -> bool:
        status[:] = [await db(_fiber_status, turn_id)]
        return status[0] is None or status[0] in {FiberStatus.RUNNING, *TERMINAL}

    await wait_until(is_decided, group=turn_group(turn_id))
    return status[0] == FiberStatus.RUNNING


def _fiber_status(turn_id: str) -> str | None:
    return Turn.objects.filter(pk=turn_id).values_list("fiber__status", flat=True).first()


def announce(turn_id: str) -> None:
    """Record that the caller is present."""
    _note(turn_id, {CALLED: True})


def give(turn_id: str, messages: list[Message]) -> None:
    """Supply the turn's messages, durably. Without messages the turn is skipped."""
    _note(turn_id, {DEFERRED: messages, "answers": [message["id"] for message in messages]})


def _note(turn_id: str, options: TurnOptions) -> None:
    """Update the options of a turn that has not begun; one that has begun or ended is left unchanged."""
    if change_options(turn_id, lambda present: {**present, **options}):
        notify_waiters(turn_id)
