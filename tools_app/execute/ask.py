"""Ask a person about a call that code makes: one function, which an agent may replace by another."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.core.questions import fill_in
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall

WAIT_SECONDS: Final = 86_400.0
"""How long code waits for a decision. Afterwards the call counts as denied."""
APPROVAL: Final = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call of code that a person has to approve. `context`: of the tool call that contains the code."""

    tool: Tool
    call: ToolCall
    ordinal: int
    context: ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """A person's decision. `edited_input`: the arguments that run instead; they are checked again."""

    is_approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None


Ask: TypeAlias = Callable[[AskedCall], Awaitable[CallDecision]]
"""Gives the decision about a call, or parks the turn until there is one (`ToolContext.wait`)."""


def wait_key(ordinal: int) -> str:
    """The key of the wait for a decision about the call of this ordinal, within the tool call of the code."""
    return f"{APPROVAL}:{ordinal}"


async def ask_by_waiting(asked: AskedCall) -> CallDecision:
    """Park the turn. The answer to the wait is `{"approved": bool, "reason": str, "input": object or null}`."""
    sentence = _sentence(asked)
    end = await asked.context.wait(APPROVAL, label=sentence, key=wait_key(asked.ordinal), seconds=WAIT_SECONDS)
    if end.has_expired:
        return CallDecision(is_approved=False, reason="There was no decision in time.")
    answer = end.answer if isinstance(end.answer, dict) else {"approved": end.answer is True}
    edited = answer.get("input")
    return CallDecision(
        is_approved=answer.get("approved") is True,
        reason=str(answer.get("reason") or ""),
        edited_input=edited if isinstance(edited, dict) else None,
    )


def _sentence(asked: AskedCall) -> str:
    text = asked.tool.approval_text
    if isinstance(text, str) and text:
        return fill_in(text, asked.call.input, asked.tool.input_schema)
    return f"{asked.tool.title or asked.tool.name} {dump(asked.call.input)}"[:200]
