"""Turns that code starts and waits for, stops, or waits out."""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

from chat.agent.base import InstanceKey
from chat.agent.methods.turns import to_messages
from chat.agent.values.turns import SKIPPED, MessageFunction, SavedTurn
from chat.instances.notifications import group_of
from chat.instances.rows import ensure_instance, find_instance
from chat.instances.waiting import wait_until
from chat.models import Turn
from chat.runtime.add_messages import add_messages
from chat.runtime.turn_callbacks import CallbackCaller, refuse_nesting, report_end, run_turn
from chat.turns.admission.admit import TurnRequest, give_input
from chat.turns.admission.intake import Continue, Program
from chat.turns.admission.stop import cancel_turn
from chat.turns.admission.tool_answers import has_pending_interaction
from chat.turns.state import input_reservation
from chat.turns.state.active import active_turns
from chat.turns.state.compaction_queue import request_compaction
from chat.turns.state.status import TurnStatus
from sessions_app.core.messages.shapes import Message, NewMessage
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InstanceTurns:
    """The turns of an instance, for agents and code."""

    key: InstanceKey

    async def run(
        self,
        words: list[NewMessage] | MessageFunction | None,
        *,
        body: JSONObject | None = None,
        callback: Any = None,
        signal: asyncio.Event | None = None,
    ) -> SavedTurn:
        """Run a turn and wait for its end; without input it continues from the last answer."""
        key = self.key
        refuse_nesting(key)
        is_stopped = signal is not None and signal.is_set()
        if is_stopped and callable(words):
            return SavedTurn(request_id="", status=TurnStatus.ABORTED)
        request = await _request(key, words, body, is_stopped=is_stopped)
        if request is None:
            return SKIPPED
        supply = partial(_supply, key, words) if callable(words) else None
        ended = await run_turn(key, request, CallbackCaller(callback=callback, signal=signal), supply_input=supply)
        await report_end(callback, ended)
        return SavedTurn(request_id=ended.request_id, status=ended.status, error=ended.error_text or None)

    async def add_messages(
        self, messages: list[NewMessage], *, parent: str | Leaf | None = Leaf.ACTIVE, is_upsert: bool = False
    ) -> list[str]:
        """Store messages without a turn."""
        return await db(add_messages, self.key, messages, parent=parent, is_upsert=is_upsert)

    async def stop(self, request_id: str | None, reason: str | None) -> bool:
        """Stop one turn by its request id, or all."""
        turn_ids = await db(_turns_to_stop, self.key, request_id)
        stopped = [turn_id for turn_id in turn_ids if await db(cancel_turn, turn_id)]
        if stopped and reason:
            extra = {"action": "turns_aborted", "turn_ids": stopped, "reason": reason}
            logger.info("turns aborted", extra=extra)
        return bool(stopped)

    async def has_pending_interaction(self) -> bool:
        """Whether a call waits for a person or a client."""
        return await db(has_pending_interaction, self.key)

    async def wait_until_stable(self, timeout_seconds: float | None) -> bool:
        """Wait until nothing runs, waits or is pending."""
        refuse_nesting(self.key)

        async def is_stable() -> bool:
            return await db(_is_stable, self.key)

        return await wait_until(is_stable, group=group_of(self.key), timeout_seconds=timeout_seconds)

    async def compact(self, instructions: str) -> str:
        """Request a compaction, behind the turns that wait."""
        return await db(lambda: request_compaction(ensure_instance(self.key), instructions=instructions))


async def _request(
    key: InstanceKey,
    words: list[NewMessage] | MessageFunction | None,
    body: JSONObject | None,
    *,
    is_stopped: bool,
) -> TurnRequest | None:
    request_id = new_id("req")
    if words is None:
        last_body = await db(_body_of_answered, key)
        if last_body is None:
            return None
        chosen = last_body if body is None else body
        return TurnRequest(intake=Continue(), request_id=request_id, body=chosen, is_stopped=is_stopped)
    if callable(words):
        return TurnRequest(intake=Program(messages=()), request_id=request_id, awaits_input=True)
    return TurnRequest(intake=Program(messages=words), request_id=request_id, is_stopped=is_stopped)


async def _supply(key: InstanceKey, function: MessageFunction, turn: Turn) -> None:
    """Wait for the turn's start, call the function, and add its messages. Without messages the turn is skipped."""
    if not await input_reservation.wait_for_place(turn.pk):
        return
    is_given = False
    try:
        await db(input_reservation.announce, turn.pk)
        now = await db(_messages, turn.session_id)
        async with asyncio.timeout(input_reservation.FUNCTION_SECONDS):
            given = await call_user_code(function, now)
        await db(give_input, key, turn, to_messages(given))
        is_given = True
    finally:
        if not is_given:
            await db(cancel_turn, turn.pk)


def _messages(session_id: str) -> list[Message]:
    return [message.to_ui() for message in selectors.model_history(session_id)]


def _body_of_answered(key: InstanceKey) -> JSONObject | None:
    """Custom fields of the last request, if the conversation ends with an answer; else nothing."""
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return None
    page = selectors.path_page(instance.session_id, limit=1)
    if not page.messages or page.messages[-1].role != "assistant":
        return None
    body: JSONObject = instance.last_body
    return body


def _turns_to_stop(key: InstanceKey, request_id: str | None) -> list[str]:
    instance = find_instance(key)
    if instance is None:
        return []
    turns = active_turns(instance.pk)
    if request_id is not None:
        turns = turns.filter(request_id=request_id)
    return list(turns.values_list("pk", flat=True))


def _is_stable(key: InstanceKey) -> bool:
    instance = find_instance(key)
    return instance is None or not (active_turns(instance.pk).exists() or has_pending_interaction(key))
