"""Ask a person about a call that code makes: as its turn does, or by waiting for an answer."""

from typing import Final

from thinkproject.kernel.jsonvalue import dump
from tools_app.calls.asking import question_for
from tools_app.core.inner_calls import CallDecision
from tools_app.core.tool import AskedCall

WAIT_SECONDS: Final = 86_400.0
"""How long code waits for a decision that no turn looks after. Afterwards the call counts as denied."""
APPROVAL: Final = "approval"


async def ask(asked: AskedCall) -> CallDecision:
    """Ask as the turn does (`ToolContext.asker`); by waiting where it has no way of its own."""
    if asked.context.asker is not None:
        return await asked.context.asker(asked)
    return await ask_by_waiting(asked)


def wait_key(ordinal: int) -> str:
    """The key of the wait for a decision about the call of this ordinal, within the tool call of the code."""
    return f"{APPROVAL}:{ordinal}"


async def ask_by_waiting(asked: AskedCall) -> CallDecision:
    """Park the turn. The answer to the wait is `{"approved": bool, "reason": str, "input": object or null}`."""
    sentence = (await question_for(asked.tool, asked.call)).sentence
    label = sentence or f"{asked.tool.title or asked.tool.name} {dump(asked.call.input)}"[:200]
    end = await asked.context.wait(APPROVAL, label=label, key=wait_key(asked.ordinal), seconds=WAIT_SECONDS)
    if end.has_expired:
        return CallDecision(is_approved=False, reason="There was no decision in time.")
    answer = end.answer if isinstance(end.answer, dict) else {"approved": end.answer is True}
    edited = answer.get("input")
    return CallDecision(
        is_approved=answer.get("approved") is True,
        reason=str(answer.get("reason") or ""),
        edited_input=edited if isinstance(edited, dict) else None,
    )
