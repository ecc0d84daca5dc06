"""Repair of a transcript before a turn: every tool call gets its result, every tool input becomes an object.

A settled call is never touched. What is repaired is visible: the part says why it has no real result.
"""

from collections.abc import Collection, Sequence
from typing import Final

from sessions_app.core.messages import call_texts
from sessions_app.core.messages.parts import input_object, interrupt_part, is_pending, map_parts, state_of, tool_name
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONValue

_WAITING: Final = frozenset({ToolState.APPROVAL_REQUESTED, ToolState.APPROVAL_RESPONDED})


def repair_messages(
    messages: Sequence[Message], *, client_tools: Collection[str] = (), waiting: Collection[str] = ()
) -> list[Message]:
    """Give the messages that had to be changed, changed; the others are left out.

    **Shape:** `messages`: a path, root first. Calls in its last message may still be answered: approved ones are run by
    the turn that follows, questions wait for a person, and calls of `client_tools` for a browser. `waiting`: ids of
    calls that wait for a person, or for their run, wherever they stand.
    """
    last = len(messages) - 1
    repaired = (_repair(message, index == last, client_tools, waiting) for index, message in enumerate(messages))
    return [new for new, old in zip(repaired, messages, strict=True) if new is not old]


def _repair(message: Message, is_last: bool, client_tools: Collection[str], waiting: Collection[str]) -> Message:
    if message["role"] != "assistant":
        return message
    return map_parts(
        message, lambda part: _repair_part(part, is_last or part.get("toolCallId") in waiting, client_tools)
    )


def _repair_part(part: Part, may_wait: bool, client_tools: Collection[str]) -> Part:
    if not is_pending(part):
        return part
    state = state_of(part)
    if state is ToolState.APPROVAL_RESPONDED and _is_denied(part):
        return {**_with_object_input(part), "state": ToolState.OUTPUT_DENIED.value}
    if may_wait and _may_be_answered(part, state, client_tools):
        return _with_object_input(part)
    return interrupt_part(part, call_texts.NOT_RUN if state is ToolState.APPROVAL_RESPONDED else call_texts.INTERRUPTED)


def _is_denied(part: Part) -> bool:
    approval: JSONValue = part.get("approval")
    return isinstance(approval, dict) and approval.get("approved") is False


def _may_be_answered(part: Part, state: ToolState | None, client_tools: Collection[str]) -> bool:
    return state in _WAITING or (state is ToolState.INPUT_AVAILABLE and tool_name(part) in client_tools)


def _with_object_input(part: Part) -> Part:
    return part if isinstance(part.get("input"), dict) else {**part, "input": input_object(part.get("input"))}
