"""A stored message as chunks again: for readers who must get it without its log.

The AI SDK's reader makes the same message of them. A call that is settled comes as streamed input and its result, never
as `tool-input-available`: pages run their own tools on that chunk, and would run them twice.
"""

from collections.abc import Iterator
from typing import Final, cast

from chat.core.wire import chunks
from chat.core.wire.accumulator import tool_name
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import dump

_KEPT_AS_THEY_ARE: Final = frozenset({"file", "reasoning-file", "source-url", "source-document", "custom"})


def rebuild(message: Message) -> Iterator[Chunk]:
    """Chunks that fold to this message, starting with `start`; parts without a chunk form are left out."""
    yield chunks.start(message["id"], metadata=message.get("metadata"))
    for number, part in enumerate(message["parts"]):
        yield from _part(part, f"r{number}")


def settlement(part: Part) -> Chunk | None:
    """The chunk that settles this tool part where it is pending; nothing when the part is pending itself."""
    call_id, dynamic, metadata = part["toolCallId"], part["type"] == "dynamic-tool", part.get("toolMetadata")
    match part.get("state"):
        case ToolState.OUTPUT_AVAILABLE:
            return chunks.tool_output_available(
                call_id,
                part.get("output"),
                preliminary=bool(part.get("preliminary")),
                dynamic=dynamic,
                metadata=metadata,
            )
        case ToolState.OUTPUT_ERROR:
            text = str(part.get("errorText") or "")
            return chunks.tool_output_error(call_id, text, dynamic=dynamic, metadata=metadata)
        case ToolState.OUTPUT_DENIED:
            return chunks.tool_output_denied(call_id)
    return None


def _part(part: Part, part_id: str) -> Iterator[Chunk]:
    kind, metadata = part["type"], part.get("providerMetadata")
    if kind == "text":
        yield chunks.text_start(part_id, provider_metadata=metadata)
        yield chunks.text_delta(part_id, part["text"])
        yield chunks.text_end(part_id)
    elif kind == "reasoning":
        yield chunks.reasoning_start(part_id, provider_metadata=metadata)
        yield chunks.reasoning_delta(part_id, part["text"])
        yield chunks.reasoning_end(part_id)
    elif kind == "step-start":
        yield chunks.start_step()
    elif tool_name(part):
        yield from _call(part)
    elif kind in _KEPT_AS_THEY_ARE or kind.startswith(chunks.DATA_PREFIX):
        yield cast("Chunk", dict(part))


def _call(part: Part) -> Iterator[Chunk]:
    call_id, name, dynamic = part["toolCallId"], tool_name(part), part["type"] == "dynamic-tool"
    tool_input, approval = part.get("input"), part.get("approval")
    metadata = part.get("callProviderMetadata")
    if part.get("state") == ToolState.INPUT_AVAILABLE and not approval:
        yield chunks.tool_input_available(
            call_id, name, tool_input, dynamic=dynamic, title=part.get("title"), provider_metadata=metadata
        )
        return
    yield chunks.tool_input_start(call_id, name, dynamic=dynamic, title=part.get("title"), provider_metadata=metadata)
    if tool_input is not None:
        yield chunks.tool_input_delta(call_id, dump(tool_input))
    if isinstance(approval, dict) and approval.get("id"):
        yield chunks.tool_approval_request(str(approval["id"]), call_id, approval.get("descriptor"))
    settled = settlement(part)
    if settled is not None:
        yield settled
