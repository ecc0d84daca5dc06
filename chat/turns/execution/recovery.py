"""Recovery of a turn: the log of the lost attempt compared with the journal, budgets, and the agent's decisions."""

from dataclasses import dataclass, replace
from typing import Final

from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.core.loop.call_records import CALL_PREFIX
from chat.core.loop.hooks import ModelSwitch, RecoveryContext, RecoveryDecision, RecoveryExhausted
from chat.core.loop.reply_chunks import key_of, reply_keys
from chat.core.loop.totals import MODEL_PREFIX
from chat.core.loop.turn_state import TurnState
from chat.core.wire.chunks import Chunk, is_shown
from chat.errors import AgentNotFound, StreamStalled
from chat.models import Turn
from chat.streams.writing.writer import StreamWriter
from chat.turns.execution.begin import read_history
from chat.turns.execution.finish import note_retry
from chat.turns.execution.turn_facts import TurnFacts
from chat.user_code.call_hook import ask_hook, is_overridden, notify_hook
from fibers.context import FiberContext
from fibers.core.budget import RecoveryBudget
from fibers.execution.recovery import settings_budget
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.steered import STEER
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

DECLINED: Final = "recovery_declined"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """The results of earlier attempts; empty for a first attempt."""

    fold: TurnState
    partial_output_shown: bool = False  # content after the last recorded step: it is sealed, not repeated
    partial_parts: tuple[Part, ...] = ()


async def load_resume_point(context: FiberContext, writer: StreamWriter, assistant_id: str) -> ResumePoint:
    """Fold what former attempts logged. The writer has the stream, so that nothing is added meanwhile."""
    fold = TurnState(assistant_id)
    if context.attempt <= 1:
        return ResumePoint(fold=fold)
    chunks: list[Chunk] = [load(text) for text in await writer.former_records()]
    for chunk in chunks:
        fold.apply(chunk)
    settled = _settled_offset(context)
    replies = reply_keys(dict(context.records()))  # they follow the last step and are no part of it
    return ResumePoint(
        fold=fold,
        partial_output_shown=any(is_shown(chunk) and key_of(chunk) not in replies for chunk in chunks[settled:]),
        partial_parts=tuple(fold.message["parts"]),
    )


def _settled_offset(context: FiberContext) -> int:
    """Offset after the last recorded model call; outputs of tools come later and are no cut content."""
    offset = 0
    for key, record in context.records():
        if key.startswith((MODEL_PREFIX, CALL_PREFIX)) and isinstance(record, dict):
            offset = max(offset, int(record.get("end", 0)))
    return offset


def without_partial(message: Message) -> Message:
    """The part of a discarded partial answer that is kept: what people said, and calls whose effects happened."""
    states = {ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR}
    settled = [part for part in message["parts"] if part.get("state") in states or part["type"] == STEER]
    return {**message, "parts": settled}


def partial_text(parts: tuple[Part, ...]) -> str:
    """The text of a partial answer."""
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def budget_of_turn(payload: JSONValue, budget: RecoveryBudget) -> RecoveryBudget:
    """The budget of a turn's recovery: what its agent's class says, and for the rest the settings'. One query."""
    name = Turn.objects.filter(pk=payload["turn_id"]).values_list("instance__agent", flat=True).first()
    try:
        agent = get_agent_class(name or "")
    except AgentNotFound:
        return budget
    return budget_of(agent, budget) if issubclass(agent, Think) else budget


def budget_of(agent: type[Think], budget: RecoveryBudget) -> RecoveryBudget:
    """A budget with what a class of agents says of its own."""
    own = {
        "max_recoveries": agent.max_recoveries,
        "no_progress_seconds": agent.no_progress_seconds,
        "max_work": agent.max_recovery_work,
        "max_memory_losses": agent.max_memory_losses,
    }
    own["is_paused"] = agent.chat_recovery == "paused"
    return replace(budget, **{name: value for name, value in own.items() if value is not None})  # type: ignore[arg-type]


async def ask_recovery(
    agent: Think, facts: TurnFacts, context: FiberContext, standing: ResumePoint
) -> RecoveryDecision | None:
    """Ask the agent whether a turn whose worker was lost goes on; `None` when it is not recovered any more."""
    known = await _recovery_context(agent, facts, context, standing.partial_parts)
    known = replace(known, kind="continue" if standing.partial_output_shown else "retry")
    if known.losses > 1 and is_overridden(agent, "should_keep_recovering"):
        wanted: bool | None = await ask_hook(agent, "should_keep_recovering", known)
        if wanted is False:
            exhausted = RecoveryExhausted(
                request_id=known.request_id,
                turn_id=known.turn_id,
                reason=DECLINED,
                partial_text=known.partial_text,
                incident_id=known.incident_id,
                losses=known.losses,
            )
            await report_exhausted(context, agent, exhausted)
            return None
    decision: RecoveryDecision | None = await ask_hook(agent, "on_chat_recovery", known)
    return decision or RecoveryDecision(continue_turn=bool(agent.chat_recovery))


async def _ask_after_stall(
    agent: Think, facts: TurnFacts, context: FiberContext, fold: TurnState, *, is_shown: bool
) -> RecoveryDecision:
    """Ask the agent whether a turn whose model fell silent goes on; it does unless the hook says no."""
    if not is_overridden(agent, "on_chat_recovery"):
        return RecoveryDecision()
    known = await _recovery_context(agent, facts, context, tuple(fold.message["parts"]))
    known = replace(known, kind="continue" if is_shown else "retry", cause="model_stalled")
    decision: RecoveryDecision | None = await ask_hook(agent, "on_chat_recovery", known)
    return decision or RecoveryDecision()


async def _recovery_context(
    agent: Think, facts: TurnFacts, context: FiberContext, parts: tuple[Part, ...]
) -> RecoveryContext:
    incident = context.incident
    return RecoveryContext(
        request_id=facts.request_id,
        turn_id=facts.turn_id,
        kind="retry",
        partial_text=partial_text(parts),
        partial_parts=parts,
        created_at=facts.accepted_at.isoformat(),
        attempt=context.attempt,
        body=facts.body,
        recovery_data=context.stashed,
        messages=tuple(await _asked_about(agent, facts)),
        client_tools=facts.client_tools,
        incident_id="" if incident is None else incident.id,
        losses=1 if incident is None else incident.losses,
        recovery_attempt=max(1, context.recoveries),
        max_recovery_attempts=budget_of(type(agent), settings_budget()).max_recoveries,
    )


async def _asked_about(agent: Think, facts: TurnFacts) -> list[Message]:
    """The conversation that the turn answers, read for a hook that looks at it."""
    hooks = ("on_chat_recovery", "should_keep_recovering")
    if facts.leaf_id is None or not any(is_overridden(agent, name) for name in hooks):
        return []
    return await db(read_history, facts.session_id, facts.leaf_id)


async def note_status(
    agent: Think, facts: TurnFacts, context: FiberContext, status: JSONObject, fold: TurnState
) -> RecoveryDecision:
    """Pass a status on: the next retry to the turn's row, a switch of models and a silent model to the agent.

    Gives its decision about a silent model; any other turn goes on.
    """
    kind = status["kind"]
    if kind == "retry":
        await db(note_retry, facts.key, facts.turn_id, status)
    elif kind == "failover":
        switch = ModelSwitch(
            request_id=facts.request_id,
            turn_id=facts.turn_id,
            from_model=status["from"],
            to_model=status["to"],
            code=status["code"],
            step_number=max(0, fold.steps_started - 1),
        )
        await notify_hook(agent, "on_model_switch", switch)
    if status.get("code") == StreamStalled.code and kind in {"stalled", "retry"}:
        return await _ask_after_stall(agent, facts, context, fold, is_shown=kind == "stalled")
    return RecoveryDecision()


async def report_exhausted(context: FiberContext, agent: Think, exhausted: RecoveryExhausted) -> None:
    """Tell the agent that a turn is given up; once, but for a crash in the middle of its hook."""

    async def told() -> JSONValue:
        await notify_hook(agent, "on_recovery_exhausted", exhausted)
        return exhausted.reason

    if is_overridden(agent, "on_recovery_exhausted"):
        await context.step("exhausted", told)
