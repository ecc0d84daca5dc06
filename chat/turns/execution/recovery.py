"""A lost attempt: its log folded and compared with the journal, what its recovery may cost, and who decides."""

from dataclasses import dataclass, replace
from typing import Final

from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.core.loop.call_records import CALL_PREFIX
from chat.core.loop.hooks import RecoveryContext, RecoveryExhausted
from chat.core.loop.loop import MODEL_PREFIX
from chat.core.loop.reply_chunks import key_of, reply_keys
from chat.core.loop.turn_state import TurnState
from chat.core.wire.chunks import Chunk, is_shown
from chat.errors import AgentNotFound
from chat.models import Turn
from chat.streams.reader import read
from chat.user_code.call_hook import call_hook_typed, is_overridden, notify_hook
from fibers.context import FiberContext
from fibers.core.budget import RecoveryBudget
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONValue, load

DECLINED: Final = "recovery_declined"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """The results of earlier attempts; empty for a first attempt."""

    fold: TurnState
    partial_output_shown: bool = False  # content after the last recorded step: it is sealed, not repeated
    partial_parts: tuple[Part, ...] = ()


async def load_resume_point(context: FiberContext, turn_id: str, assistant_id: str) -> ResumePoint:
    """Fold what former attempts logged. Call it once the writer has the stream, so that nothing is added meanwhile."""
    fold = TurnState(assistant_id)
    if context.attempt <= 1:
        return ResumePoint(fold=fold)
    chunks: list[Chunk] = [load(record.text) for record in await read(turn_id, 0)]
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
    """The part of a discarded partial answer that is kept: settled tool calls, since their effects happened."""
    settled = [
        part for part in message["parts"] if part.get("state") in {ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR}
    ]
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
    return replace(budget, **{name: value for name, value in own.items() if value is not None})  # type: ignore[arg-type]


async def keeps_recovering(agent: Think, context: RecoveryContext) -> bool:
    """Whether the class wants a turn recovered that has lost its worker more than once."""
    if context.losses < 2 or not is_overridden(agent, "should_keep_recovering"):
        return True
    wanted: bool | None = await call_hook_typed(agent, "should_keep_recovering", bool, context)
    return wanted is not False


async def report_exhausted(context: FiberContext, agent: Think, exhausted: RecoveryExhausted) -> None:
    """Tell the agent that a turn is given up; once, but for a crash in the middle of its hook."""

    async def told() -> JSONValue:
        await notify_hook(agent, "on_recovery_exhausted", exhausted)
        return exhausted.reason

    if is_overridden(agent, "on_recovery_exhausted"):
        await context.step("exhausted", told)
