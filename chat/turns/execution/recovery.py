"""The resume point of a lost attempt: its log folded, and compared with the journal."""

from dataclasses import dataclass

from chat.core.loop.call_records import CALL_PREFIX
from chat.core.loop.loop import MODEL_PREFIX
from chat.core.loop.reply_chunks import key_of, reply_keys
from chat.core.loop.turn_state import TurnState
from chat.core.wire.chunks import Chunk, is_shown
from chat.streams.reader import read
from fibers.context import FiberContext
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import load


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
