"""Calls of an earlier answer that a person approved: run by the turn that continues it, before its model is asked.

Where the conversation has gone on since, the calls stand further up, and a note at its end says how they ended.

Each is settled in one transaction: the call's row, the stored message with the result, and a record in the journal. The
call runs with exactly the arguments that were shown, or those that the person made of them, and the agent's hooks still
see it.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from chat.core.context.prompt import DecidedCall, decided_note
from chat.core.context.sent_note import latest_zone
from chat.core.loop.call_records import call_record
from chat.files.reply_parts import keep_reply
from chat.instances.rows import find_instance
from chat.models import Turn
from chat.turns.admission.tool_answers import show_answers, with_answers
from chat.turns.execution.tools import TurnTools
from chat.turns.execution.turn_facts import TurnFacts
from fibers.context import FiberContext
from fibers.errors import Parked
from fibers.waits import Wait
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db
from thinkproject.kernel.zones import in_zone
from tools_app.calls.selectors import approved_calls, calls_of
from tools_app.calls.services import settle_call
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolResult
from tools_app.models import ToolCallRecord


async def run_approved(context: FiberContext, facts: TurnFacts, tools: TurnTools, history: list[Message]) -> None:
    """Run the approved calls of the answer that this turn continues, concurrently; write results into `history`.

    Durability: a call that a crash cut runs again under the same idempotency key. Errors: a lost lease; `Parked` for
    all that wait, once the others have ended.
    """
    turn = await db(_continued, facts)
    rows = [] if turn is None else await db(approved_calls, turn.pk)
    if turn is None or not rows:
        return
    asked_before = list(takewhile(lambda message: message["id"] != turn.assistant_id, history))
    with in_zone(latest_zone(asked_before)):  # the question to the person was in this one
        running = [asyncio.create_task(_run(context, tools, turn, row)) for row in rows]
    try:
        await _ended(running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    change = await db(with_answers, rows)
    history[:] = [change(message) if message["role"] == "assistant" else message for message in history]


async def late_note(facts: TurnFacts) -> str:
    """The note for the model about calls that stand further up than the end of the conversation, or nothing.

    Of a turn that goes on from an answer with lasting questions, after messages that came in between.
    """
    return await db(_late_note, facts) if facts.parent_id is not None else ""


def _late_note(facts: TurnFacts) -> str:
    turn = Turn.objects.filter(pk=facts.parent_id).first()
    if turn is None or turn.assistant_id == facts.leaf_id:
        return ""
    return decided_note(
        DecidedCall(
            tool_name=row.tool_name,
            input=row.input_to_run,
            is_approved=row.status != CallStatus.DENIED,
            output=row.output,
        )
        for row in calls_of(turn.pk).filter(lasting=True)
    )


async def _ended(running: Sequence["asyncio.Task[None]"]) -> None:
    waits: list[Wait] = []
    pending = set(running)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            try:
                task.result()
            except Parked as parked:
                waits += parked.waits
    if waits:
        raise Parked(waits[0].kind, waits)


def _continued(facts: TurnFacts) -> Turn | None:
    if facts.parent_id is not None:
        return Turn.objects.filter(pk=facts.parent_id).first()
    return Turn.objects.filter(session_id=facts.session_id, assistant_id=facts.leaf_id or "").first()


async def _run(context: FiberContext, tools: TurnTools, turn: Turn, row: ToolCallRecord) -> None:
    call = ToolCall(call_id=row.call_id, tool_name=row.tool_name, input=row.input_to_run)
    async for item in tools.run_approved(call, turn.pk):
        if isinstance(item, ToolResult):
            await db(partial(_settle, context, tools, turn, row, item))


def _settle(context: FiberContext, tools: TurnTools, turn: Turn, row: ToolCallRecord, result: ToolResult) -> None:
    with context.fenced():
        call = ToolCall(call_id=row.call_id, tool_name=row.tool_name, input=row.input_to_run)
        context.record_in(f"approved:{row.pk}", {**call_record(call, result), "call": row.call_id})
        keep_reply(tools.turn.facts.key, result.reply)
        tools.turn.guard.store_result(turn.assistant_id, row.call_id, result)
        settle_call(row.call_id, turn_id=turn.pk, result=result)
        instance = find_instance(tools.turn.facts.key)
        if instance is not None:
            show_answers(instance, turn, [row])
