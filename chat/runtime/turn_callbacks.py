"""Start a turn from server code and wait for its end: its chunks to a callback, a signal that stops it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from chat.agent.base import InstanceKey
from chat.core.durable_names import TURN_FIBER
from chat.core.wire.chunks import STATUS
from chat.errors import ChatError, NestedTurn, TurnNotFound, TurnTimeout, TurnWaits
from chat.instances.notifications import group_of
from chat.models import Turn
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.streams.reader import follow
from chat.streams.records import Reset
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.stop import cancel_turn
from chat.turns.state.status import TurnStatus
from chat.turns.tools.caller_calls import CallerTools, serving
from fibers.context import current_fiber
from fibers.core.states import Interrupt
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.jsonvalue import JSONObject, load
from thinkproject.kernel.phrases import Phrase
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackCaller:
    """The one who waits for a turn: what it is given, and for how long it waits. Setting `signal` stops the turn.

    `seconds`: for the end; `parked_seconds`: while the turn itself waits for an answer; `None` is no limit.
    """

    callback: Any = None
    signal: asyncio.Event | None = None
    seconds: float | None = None
    parked_seconds: float | None = None


async def run_turn(
    key: InstanceKey,
    request: TurnRequest,
    caller: CallbackCaller,
    *,
    supply_input: Callable[[Turn], Awaitable[None]] | None = None,
    tools: CallerTools | None = None,
) -> TurnRef:
    """Admit a turn and wait for its end; the chunks go to the callback as they come.

    Where another answer takes its message in, this waits for that one and returns it.
    `supply_input` is awaited for a turn whose input is not known yet. `tools` run here when they are called.
    Errors: those of admission and of `supply_input`; `NestedTurn` from inside a turn of the same conversation;
    `TurnWaits` and `TurnTimeout` when the caller's time is over, and the turn goes on; `TurnNotFound` when the
    conversation is deleted meanwhile.
    """
    refuse_nesting(key)
    if tools:
        request = replace(request, options={**request.options, "caller_tools": tools.declarations})
    turn = (await db(admit, key, request)).turn
    await call_back(caller.callback, "on_start", turn.request_id)
    async with serving(key, turn, tools):
        if supply_input is not None:
            async with _stopping_on(caller.signal, turn.pk), _stopping_with_caller(key, turn.pk):
                await supply_input(turn)
        ended = await follow_turn(key, turn, caller)
    if is_reading():  # the caller is a call of another conversation, and may return the answer there
        for _, text in await db(texts_of, ended.session_id):
            note_here(text.origin, text.source)
    return ended


async def follow_turn(key: InstanceKey, turn: Turn, caller: CallbackCaller) -> TurnRef:
    """Wait for the end of a turn that was admitted; the chunks go to the callback, from its first one on.

    Errors: as of `run_turn` after the admission.
    """
    current = turn
    while True:
        async with _stopping_on(caller.signal, current.pk), _stopping_with_caller(key, current.pk):
            await _deliver(current, caller)
        ended = await db(snapshots.find_turn, key, turn_id=current.pk)
        if ended is None:
            raise TurnNotFound("The conversation was deleted while the turn ran.")
        answering = await _answering(ended)
        if answering is None:
            return ended
        current = answering


async def _answering(ended: TurnRef) -> Turn | None:
    """The turn whose answer has taken a turn's message in, if one has."""
    return await db(snapshots.answering, ended.turn_id) if ended.status is TurnStatus.SKIPPED else None


async def report_end(callback: Any, ended: TurnRef) -> None:
    """Give the end of a turn to a callback: `on_done`, or `on_error` with the text; nothing after a stop."""
    if ended.status is TurnStatus.COMPLETED:
        await call_back(callback, "on_done")
    elif ended.status is TurnStatus.ERROR:
        await call_back(callback, "on_error", ended.error_text)


async def _deliver(turn: Turn, caller: CallbackCaller) -> None:
    """Give the chunks of a turn to a callback as they come; returns when the turn is over.

    Errors: `TurnWaits`, `TurnTimeout` when the caller's time is over first.
    """

    async def is_over() -> bool:
        return await db(snapshots.is_final, turn.pk)

    waits: list[JSONObject] = []
    try:
        async with (
            asyncio.timeout(caller.seconds) as clock,
            aclosing(follow(turn.pk, 0, is_over=is_over)) as events,
        ):
            end = clock.when()
            async for event in events:
                if isinstance(event, list):
                    for record in event:
                        await call_back(caller.callback, "on_event", record.text)
                    waits = _waits_in(event[-1].text) if event else waits
                    clock.reschedule(_earlier(end, caller.parked_seconds if waits else None))
                elif isinstance(event, Reset):
                    await call_back(caller.callback, "on_reset")
    except TimeoutError as error:
        if not clock.expired():
            raise  # the callback's own
        raise _impatience(turn, waits) from error


def _waits_in(text: str) -> list[JSONObject]:
    """The waits of a turn that has parked with this chunk; none for any other chunk."""
    if STATUS not in text:  # parsed for few chunks
        return []
    chunk = load(text)
    data = chunk.get("data") if chunk.get("type") == STATUS else None
    return list(data.get("waits") or ()) if isinstance(data, dict) and data.get("kind") == "waiting" else []


def _earlier(end: float | None, seconds: float | None) -> float | None:
    moments = [] if seconds is None else [asyncio.get_running_loop().time() + seconds]
    return min([*moments, *([] if end is None else [end])], default=None)


def _impatience(turn: Turn, waits: list[JSONObject]) -> ChatError:
    if not waits:
        return TurnTimeout("The turn has not ended in time. It goes on.", request_id=turn.request_id, turn_id=turn.pk)
    named = ", ".join(f"“{wait.get('label') or wait.get('kind')}” (call {wait.get('callId')})" for wait in waits)
    text = Phrase(
        "The turn waits for an answer to {questions}, and goes on by itself when there is one.", questions=named
    )
    return TurnWaits(text, request_id=turn.request_id, turn_id=turn.pk, waits=waits)


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
