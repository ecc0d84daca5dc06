"""A place in the queue for code that says what it wants to say when its turn starts.

A function cannot be stored. So the turn is admitted without its messages and takes its place in the lane. When it
starts, the worker waits for a moment; the caller, which has waited in its own process, calls the function with the
messages of now and stores what it gives. From then on the turn is like any other. If the caller is gone, nothing was
said: the turn is skipped.
"""

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Final

from chat.models import Turn
from chat.turns.entering import LATER, end_unbegun
from chat.turns.status import SKIPPED_REASON
from fibers.context import FiberContext
from fibers.core.states import TERMINAL, FiberStatus, Interrupt
from fibers.errors import Cancelled
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

logger = logging.getLogger(__name__)

AWAITS: Final = "awaits_input"
"""Name of the mark in the fiber's metadata."""

CALLED: Final = "called"
"""Name of the mark in the turn's options: the caller is there and calls its function."""

CALLER_SECONDS = 10.0
FUNCTION_SECONDS = 60.0
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a slot stands for its caller."""

    is_open: bool  # the turn has its place and waits for what is to be said
    is_over: bool


async def wait_for_input(context: FiberContext, turn_id: str) -> None:
    """Wait until the caller has given what this turn says. Costs nothing for other turns.

    Errors: `Cancelled`, as skipped when nothing is said or the caller is gone.
    """
    if not context.metadata.get(AWAITS):
        return
    try:
        said = await _input_of(turn_id)
    except asyncio.CancelledError:
        if context.interrupt is not Interrupt.CANCEL:
            raise
        await db(_end, context, turn_id)
        raise Cancelled from None
    if not said:
        await db(_end, context, turn_id)
        raise Cancelled(reason=SKIPPED_REASON)


async def _input_of(turn_id: str) -> list[JSONObject]:
    """What was given; nothing when the caller is gone, or wants to say nothing."""
    began_at = time.monotonic()
    while True:
        options = await db(_options, turn_id)
        if LATER in options:
            said: list[JSONObject] = options[LATER]
            return said
        patience = FUNCTION_SECONDS + CALLER_SECONDS if options.get(CALLED) else CALLER_SECONDS
        if time.monotonic() - began_at > patience:
            logger.warning("caller of a turn is gone", extra={"action": "turn_caller_gone", "turn_id": turn_id})
            return []
        await asyncio.sleep(POLL_SECONDS)


def _options(turn_id: str) -> JSONObject:
    options: JSONObject = Turn.objects.filter(pk=turn_id).values_list("options", flat=True).first() or {LATER: []}
    return options


def _end(context: FiberContext, turn_id: str) -> None:
    with context.fenced():
        end_unbegun(turn_id)


def look_at(turn_id: str) -> Slot:
    """Look where a slot stands."""
    turn = Turn.objects.filter(pk=turn_id).select_related("fiber").first()
    if turn is None or turn.fiber.status in TERMINAL:
        return Slot(is_open=False, is_over=True)
    return Slot(is_open=turn.fiber.status == FiberStatus.RUNNING, is_over=False)


def announce(turn_id: str) -> None:
    """Say that the caller is there."""
    _note(turn_id, {CALLED: True})


def give(turn_id: str, messages: list[JSONObject]) -> None:
    """Give what the turn says; durable from here on. Without messages the turn is skipped."""
    _note(turn_id, {LATER: messages, "answers": [message["id"] for message in messages]})


def _note(turn_id: str, options: JSONObject) -> None:
    # Nobody else writes the options of a turn that has not begun; one that has ended meanwhile is left alone.
    turn = Turn.objects.filter(pk=turn_id, started_at=None, finished_at=None).first()
    if turn is not None:
        Turn.objects.filter(pk=turn_id, started_at=None, finished_at=None).update(options={**turn.options, **options})
