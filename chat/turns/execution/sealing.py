"""The sealing of turns that were abandoned: what was written is stored as the answer, with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from django.utils import timezone

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import INTERRUPTED_TEXT, Think
from chat.core.loop.call_records import cut_outputs, recorded_outputs
from chat.core.loop.hooks import ChatErrorContext, RecoveryExhausted
from chat.core.loop.totals import TurnTotals, totals_of
from chat.core.loop.turn_state import TurnState
from chat.instances.notifications import group_of, send_conversation, send_notification
from chat.instances.rows import key_of
from chat.instances.runs import note_turn_end, stop_runs_of
from chat.models import Turn
from chat.streams.reader import close_stream
from chat.streams.writing.writer import StreamWriter
from chat.turns.admission.oversized import fit_answer
from chat.turns.background.costs import write_costs
from chat.turns.execution.after_turn import start_response_hook
from chat.turns.execution.begin import leaf_of
from chat.turns.execution.finish import FINAL, store_answer
from chat.turns.execution.recovery import partial_text, report_exhausted
from chat.turns.execution.tool_call.call import close_cut
from chat.turns.execution.turn_facts import TurnFacts, facts_of, has_content
from chat.turns.inbox.answering import STOPPED, answer_taken
from chat.turns.state.status import SKIPPED_REASON
from chat.user_code.call_hook import is_overridden, user_facing_error
from fibers.context import FiberContext
from fibers.core.budget import Exhausted, read_incident
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.selectors import history
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import load

FindAgent: TypeAlias = Callable[[InstanceKey], Agent | None]
PAUSED_TEXT = "The assistant was interrupted. Nothing is lost: resume it, and it goes on from here."


async def seal_turn(context: FiberContext, find_agent: FindAgent) -> None:
    """Store the partial answer of an abandoned turn, with the reason. Idempotent.

    `find_agent` gives an object of the turn's class, or `None` when that is gone.
    """
    turn_id = str(context.payload["payload"]["turn_id"])
    turn = await db(lambda: Turn.objects.select_related("instance").filter(pk=turn_id).first())
    if turn is None:
        return
    steps = await db(history, str(context.payload["fiber_id"]))
    records = {step.step_key: step.value for step in steps}
    if FINAL not in records:
        facts = facts_of(turn, leaf_of(turn, records))
        agent = find_agent(facts.key)
        async with StreamWriter(turn_id, fence=int(context.payload["fence"]), ctx_fenced=context.fenced) as writer:
            fold = TurnState(turn.assistant_id)
            for text in await writer.former_records():
                fold.apply(load(text))
            for chunk in recorded_outputs(fold, records):
                writer.write(chunk)
            cut = await db(close_cut, context, turn_id)
            for chunk in cut_outputs(fold, cut, call_texts.INTERRUPTED):
                writer.write(chunk)
            message, original_ids = await db(fit_answer, facts.key, fold.message)
            sealed = _Sealed(
                message=message,
                original_ids=original_ids,
                error_text=await _sealed_error(context, facts, message, agent),
                totals=totals_of(records),
            )
            await writer.flush_cold(lambda _offsets: _store_sealed(context, facts, sealed, agent))
            partial_answer = partial_text(tuple(fold.message["parts"]))
        await _report_given_up(context, facts, partial_answer, agent)
    await close_stream(turn_id)
    send_notification(group_of(key_of(turn.instance)), {"type": "turn.settled", "turn_id": turn_id})
    send_conversation(turn.instance.owner_id, turn.instance_id)


async def _report_given_up(context: FiberContext, facts: TurnFacts, partial_answer: str, agent: Agent | None) -> None:
    """Tell the agent of a turn that recovery has given up; other ends have hooks of their own."""
    was_given_up = context.payload["status"] == FiberStatus.INTERRUPTED and not _is_paused(context)
    if not was_given_up or not isinstance(agent, Think):
        return
    row = await db(lambda: Fiber.objects.filter(pk=context.payload["fiber_id"]).first())
    incident = None if row is None else read_incident(row.incident)
    exhausted = RecoveryExhausted(
        request_id=facts.request_id,
        turn_id=facts.turn_id,
        reason=str(context.payload["reason"]),
        partial_text=partial_answer,
        incident_id="" if incident is None else incident.id,
        losses=0 if incident is None else incident.losses,
    )
    await report_exhausted(context, agent, exhausted)


async def _sealed_error(context: FiberContext, facts: TurnFacts, message: Message, agent: Agent | None) -> str:
    """The error text of an abandoned turn; empty for a stopped one."""
    if context.payload["status"] == FiberStatus.CANCELLED:
        return ""
    error_context = ChatErrorContext(
        request_id=facts.request_id, stage="recovery", messages_persisted=has_content(message), code="interrupted"
    )
    text = agent.interrupted_text if isinstance(agent, Think) else INTERRUPTED_TEXT
    text = PAUSED_TEXT if _is_paused(context) else text
    return await user_facing_error(agent, ThinkError(text), error_context)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sealed:
    """The stored part of an abandoned turn's answer."""

    message: Message
    original_ids: list[str]
    error_text: str
    totals: TurnTotals


def _store_sealed(context: FiberContext, facts: TurnFacts, sealed: _Sealed, agent: Agent | None) -> None:
    was_cancelled = context.payload["status"] == FiberStatus.CANCELLED
    store_answer(facts, sealed.message, sealed.original_ids)
    code = Exhausted.PAUSED.value if _is_paused(context) else "interrupted"
    Turn.objects.filter(pk=facts.turn_id, finished_at=None).update(
        finished_at=timezone.now(), error_text=sealed.error_text, error_code="" if was_cancelled else code
    )
    write_costs(facts.turn_id, facts.session_id, sealed.totals)
    was_skipped = context.payload["reason"] == SKIPPED_REASON  # it never began
    stop_runs_of(facts.turn_id, "parent-stopped")
    if facts.is_of_inbox:
        answer_taken(facts.instance, [facts.turn_id, *facts.goes_on_from], "", failure=sealed.error_text or STOPPED)
    if facts.key.parent is not None:
        status = "aborted" if was_cancelled else "interrupted"
        note_turn_end(facts.key.instance_id, facts.turn_id, status, error=sealed.error_text)
    if not was_skipped and agent is not None and is_overridden(agent, "on_chat_response"):
        start_response_hook(facts.turn_id, facts.key, "aborted" if was_cancelled else "error", sealed.error_text)


def _is_paused(context: FiberContext) -> bool:
    return bool(context.payload["reason"] == Exhausted.PAUSED)
