"""Parts of a message: their shapes, and applying an answer to a tool part.

`apply_result` and `apply_approval` give a new message, or the *same object* when nothing applies: the first answer to
a call wins, and a settled part never changes again. Nothing here changes its argument.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from sessions_app.core.messages import call_texts, shapes
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ACCEPTS_APPROVAL, ACCEPTS_RESULT, SETTLED, ToolState
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

TOOL_PREFIX: Final = "tool-"
DATA_PREFIX: Final = "data-"


_STATES: Final = frozenset(state.value for state in ToolState)

_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text",),
    "reasoning": ("text",),
    "step-start": (),
    "source-url": ("sourceId", "url"),
    "source-document": ("sourceId", "mediaType", "title"),
    "file": ("mediaType", "url"),
    "reasoning-file": ("mediaType", "url"),
    "custom": (),
    "steering-message": (),
    "dynamic-tool": ("toolName", "toolCallId"),
}
"""Known part types and the text fields each must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An answer to a tool call: an output, or an error text for the model. `metadata`: the part's `toolMetadata`."""

    output: JSONValue = None
    is_error: bool = False
    error_text: str = ""
    metadata: JSONObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's decision about a tool call. `edited_input`: the arguments that it was changed to."""

    approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None


def is_tool(part: Mapping[str, object]) -> bool:
    """Whether a part is a tool call, of a named or of a dynamic tool."""
    kind = str(part.get("type", ""))
    return kind == "dynamic-tool" or (kind.startswith(TOOL_PREFIX) and len(kind) > len(TOOL_PREFIX))


def tool_name(part: Mapping[str, object]) -> str:
    """Name of the tool that a tool part calls."""
    named = part.get("toolName")
    return str(named) if named else str(part.get("type", "")).removeprefix(TOOL_PREFIX)


def state_of(part: Mapping[str, object]) -> ToolState | None:
    """State of a tool part; `None` for other parts and for unknown states."""
    state = part.get("state")
    return ToolState(state) if is_tool(part) and isinstance(state, str) and state in _STATES else None


def is_settled(part: Mapping[str, object]) -> bool:
    """Whether a tool part has its result: an output of whatever state, or a final state."""
    return is_tool(part) and ("output" in part or "result" in part or state_of(part) in SETTLED)


def is_pending(part: Mapping[str, object]) -> bool:
    """Whether a part is a tool call without its result."""
    return is_tool(part) and not is_settled(part)


def is_lasting(part: Mapping[str, object]) -> bool:
    """Whether a part is a call whose question stays open when the conversation goes on."""
    approval = part.get("approval")
    descriptor = approval.get("descriptor") if isinstance(approval, dict) else None
    return is_pending(part) and isinstance(descriptor, dict) and descriptor.get("lasting") is True


def pending_calls(message: Message) -> list[str]:
    """Ids of the calls in a message that have no result, in order."""
    return [str(part.get("toolCallId", "")) for part in message["parts"] if is_pending(part)]


def part_problem(part: JSONValue) -> str:
    """Validate an external part; returns the problem, or an empty text."""
    if not isinstance(part, dict):
        return "is not a JSON object"
    kind = part.get("type")
    if not isinstance(kind, str):
        return "has no type"
    required = _required_fields(kind)
    if required is None:
        return f"has the unknown type {kind[:64]!r}"
    for field in required:
        if not isinstance(part.get(field), str):
            return f"of type {kind[:64]!r} needs the text field {field!r}"
    if is_tool(part) and state_of(part) is None:
        return f"of type {kind[:64]!r} has no known state"
    return ""


def _required_fields(kind: str) -> tuple[str, ...] | None:
    if kind.startswith(TOOL_PREFIX) and len(kind) > len(TOOL_PREFIX):
        return ("toolCallId",)
    if kind.startswith(DATA_PREFIX) and len(kind) > len(DATA_PREFIX):
        return ()
    return _REQUIRED.get(kind)


def apply_result(message: Message, call_id: str, result: Result) -> Message:
    """Give the message with a call settled by its result; the same object when the call is unknown or settled."""
    return _on_call(message, call_id, lambda part: settle_part(part, result))


def apply_approval(message: Message, call_id: str, approval: Approval) -> Message:
    """Give the message with a call approved or denied; the same object when there is nothing to decide."""
    return _on_call(message, call_id, lambda part: decide_part(part, approval))


def hand_over(message: Message, call_id: str) -> Message:
    """Have a call whose approval was requested wait for a client's result."""

    def waiting(part: Part) -> Part:
        if state_of(part) is not ToolState.APPROVAL_REQUESTED:
            return part
        handed: Part = {**part, "state": ToolState.INPUT_AVAILABLE.value}
        handed.pop("approval", None)
        return handed

    return _on_call(message, call_id, waiting)


def settle_part(part: Part, result: Result) -> Part:
    """Settle one tool part by a result. First answer wins: a settled part comes back as the same object."""
    if is_settled(part) or state_of(part) not in ACCEPTS_RESULT:
        return part
    if result.metadata:
        part = {**part, "toolMetadata": result.metadata}
    if result.is_error:
        return {**part, "state": ToolState.OUTPUT_ERROR.value, "errorText": result.error_text or call_texts.DENIED}
    return {
        **part,
        "state": ToolState.OUTPUT_AVAILABLE.value,
        "output": result.output,
        "preliminary": False,
    }


def decide_part(part: Part, approval: Approval) -> Part:
    """Approve or deny one tool part; decided and settled parts come back as the same object.

    The fields of the request for approval are kept. A transcript from before approvals had ids gets the call's id.
    Where the person changed the arguments the part has the changed ones, and the approval those of the model.
    """
    if is_settled(part) or state_of(part) not in ACCEPTS_APPROVAL:
        return part
    state = ToolState.APPROVAL_RESPONDED if approval.approved else ToolState.OUTPUT_DENIED
    decided: Part = {**part, "state": state.value, "approval": _decision(part, approval)}
    if approval.edited_input is not None:
        decided["input"] = approval.edited_input
    return decided


def _decision(part: Part, approval: Approval) -> shapes.Approval:
    asked: JSONValue = part.get("approval")
    kept: JSONObject = asked if isinstance(asked, dict) else {}
    decision = {**kept, "id": kept.get("id") or part.get("toolCallId"), "approved": approval.approved}
    if approval.reason:
        decision["reason"] = approval.reason
    if approval.edited_input is not None:
        decision |= {"edited": True, "originalInput": part.get("input")}
    return cast("shapes.Approval", decision)


def interrupt_part(part: Part, text: str) -> Part:
    """Turn an open tool part into a failed one, whatever state it was left in."""
    return {**part, "input": input_object(part.get("input")), "state": ToolState.OUTPUT_ERROR.value, "errorText": text}


def input_object(value: JSONValue) -> JSONObject:
    """Make an object of a tool input: an object stays, text that holds a JSON object is read, all else is empty."""
    if isinstance(value, str):
        try:
            value = load(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def map_parts(message: Message, change: Callable[[Part], Part]) -> Message:
    """Give the message with each part changed; the same object when every part came back as itself."""
    parts = [change(part) for part in message["parts"]]
    if all(new is old for new, old in zip(parts, message["parts"], strict=True)):
        return message
    return {**message, "parts": parts}


def _on_call(message: Message, call_id: str, change: Callable[[Part], Part]) -> Message:
    return map_parts(message, lambda p: change(p) if is_tool(p) and p.get("toolCallId") == call_id else p)
