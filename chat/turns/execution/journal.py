"""The loop's journal: a record commits in one transaction with the cold log that it closes, and holds its range."""

import asyncio

from chat.core.durable_names import EXPIRY_FIBER
from chat.core.loop.call_records import CALL_PREFIX
from chat.files.reply_parts import keep_reply
from chat.instances.notifications import notify_conversation
from chat.models import NoticeKind
from chat.push.starting import note
from chat.streams.writing.writer import StreamWriter
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.turn_guard import TurnGuard
from fibers.context import FiberContext
from fibers.services import start_fiber
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.services import expiry_key, pause_call, settle_call
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolResult
from tools_app.models import ToolCallRecord


class TurnJournal:
    """Settled steps of one turn, over the fiber's journal and the stream's writer."""

    def __init__(self, context: FiberContext, writer: StreamWriter, facts: TurnFacts, guard: TurnGuard) -> None:
        self._context = context
        self._guard = guard
        self._writer = writer
        self._facts = facts
        self._lock = asyncio.Lock()  # parallel calls settle one after another

    async def recorded(self, key: str) -> JSONObject | None:
        """Give the record of a settled step."""
        found = await self._context.recorded(key)
        return None if found is None else found.value

    async def record(self, key: str, value: JSONObject, *, is_last: bool = False) -> None:
        """Settle a step: the log up to here, the record, and the call's row. Errors: `LeaseLost`, `Fenced`.

        The record of what is likely the last step goes with the end of the turn, or with whatever is committed first.
        """
        if is_last:
            self._context.record_soon(key, {**value, "end": self._writer.next_offset})
            self._writer.begin_step()
            return
        async with self._lock:
            await self._writer.flush_cold(lambda offsets: self._settle(key, {**value, "end": offsets.stop}))

    def _settle(self, key: str, record: JSONObject) -> None:
        self._context.record_in(key, record)
        if key.startswith(CALL_PREFIX):
            self._note(key.removeprefix(CALL_PREFIX), record)

    def _note(self, call_id: str, record: JSONObject) -> None:
        if "waits" not in record:
            result = ToolResult(
                output=record["output"],
                is_error=record["is_error"],
                duration_ms=record["ms"],
                details=record.get("details", {}),
            )
            keep_reply(self._facts.key, record.get("reply", ()))
            self._guard.store_result(self._facts.assistant_id, call_id, result)
            settle_call(call_id, turn_id=self._facts.turn_id, result=result)
            return
        call = ToolCall(call_id=call_id, tool_name=record["tool_name"], input=record["input"])
        pause = ToolPause(
            status=CallStatus(record["waits"]),
            approval_id=record["approval_id"],
            expires_seconds=record["expires_seconds"],
            question=record.get("question"),
        )
        hand_out(self._facts, call, pause)


def hand_out(facts: TurnFacts, call: ToolCall, pause: ToolPause, *, wait_key: str = "") -> ToolCallRecord:
    """Record that a call waits for an answer from outside, notify people, and start what ends a question in time.

    Inside a fenced transaction; safe to call again. `wait_key`: of the wait in which the turn is parked meanwhile.
    """
    key = facts.key
    row = pause_call(
        call, pause, turn_id=facts.turn_id, scope=key.instance_id, owner_id=key.owner_id, wait_key=wait_key
    )
    notify_conversation(key.owner_id, key.instance_id)
    if pause.status is CallStatus.ASKED:
        note(NoticeKind.DECISION, str(row.pk), key.owner_id, call=row.pk, instance_id=key.instance_id)
    if pause.expires_seconds is not None:
        start_fiber(
            EXPIRY_FIBER,
            {"row_id": row.pk, "instance_id": key.instance_id},
            key=expiry_key(row.pk),
            owner_id=key.owner_id,
            delay_seconds=pause.expires_seconds,
            max_retries=3,
        )
    return row
