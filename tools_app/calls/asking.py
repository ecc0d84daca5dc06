"""Whether a person must approve a call, and what that person is asked, as the tool's author says.

Used for the calls of a model and for those of code that a model wrote.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from fibers.errors import FiberError
from thinkproject.kernel.aio import call_user_code
from thinkproject.kernel.errors import ThinkError
from tools_app.core.guard.reach import held_back
from tools_app.core.guard.rules import SeenText
from tools_app.core.questions import Question, fill_in, one_line
from tools_app.core.tool import AnyRule, CheckFunction, RuleFunction, TextFunction, Tool, ToolContext
from tools_app.core.tool_calls import ToolCall

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


async def must_ask(tool: Tool, call: ToolCall, context: ToolContext) -> bool:
    """Whether a person must approve the call, by the tool's own rule or by the injection guard.

    No rule lowers what the guard says. A rule that fails or takes too long leaves it to the person.
    """
    rule = tool.needs_approval
    if isinstance(rule, bool):
        is_asked = rule
    else:
        is_asked = await _answered(tool, "needs_approval", _is_true(rule, call, context), instead=True)
    return is_asked or (context.guard is not None and await context.guard.must_ask(tool))


async def refusal_of(tool: Tool, call: ToolCall, context: ToolContext) -> str:
    """Why the call would fail whatever a person says, in the words for the model; empty where nothing shows that.

    A check that takes too long leaves it to the person. What it reads does not count as read.
    """
    if tool.check is None:
        return ""
    with held_back():
        return await _answered(tool, "check", _refusal(tool.check, call, context), instead="")


async def _refusal(check: CheckFunction, call: ToolCall, context: ToolContext) -> str:
    try:
        await call_user_code(check, call.input, context)
    except FiberError:
        raise
    except ThinkError as error:
        return error.message or type(error).__name__
    except Exception as error:  # as of the tool itself: its text is what the model reads
        extra = {"action": "tool_failed", "tool": call.tool_name, "call_id": call.call_id}
        logger.warning("tool failed", exc_info=True, extra=extra)
        return str(error) or type(error).__name__
    return ""


async def question_for(tool: Tool, call: ToolCall, because: Sequence[SeenText] = ()) -> Question:
    """The question to the person, in the tool's own words; without a sentence where its function fails.

    `because`: the texts for which the injection guard asks.
    """
    text = tool.approval_text
    if isinstance(text, str):
        sentence = fill_in(text, call.input, tool.input_schema)
    else:
        sentence = await _answered(tool, "approval_text", _words(text, call), instead="")
    return Question(
        title=tool.title,
        sentence=sentence,
        may_edit=tool.editable,
        input_schema=tool.input_schema if tool.editable else None,
        risk=(tool.action.risk or "") if tool.action is not None else "",
        lasting=tool.action is not None and tool.action.pause_seconds is not None,
        because=tuple(because),
        runs_elsewhere=tool.is_client,
        permissions=tool.action.permissions if tool.action is not None else None,
    )


async def _is_true(rule: RuleFunction | AnyRule, call: ToolCall, context: ToolContext) -> bool:
    for function in rule.rules if isinstance(rule, AnyRule) else (rule,):
        if await call_user_code(function, call.input, context):
            return True
    return False


async def _words(text: TextFunction, call: ToolCall) -> str:
    return one_line(str(await call_user_code(text, call.input)))


async def _answered(tool: Tool, method: str, answer: Awaitable[Answer], *, instead: Answer) -> Answer:
    """The answer of a developer's function within the time of its tool; `instead` where it fails."""
    try:
        async with asyncio.timeout(tool.timeout_seconds):
            return await answer
    except FiberError:
        raise  # the lease is lost: nothing that the function says counts
    except Exception:  # a developer's function may raise anything
        extra = {"action": "agent_code_failed", "method": method, "tool": tool.name}
        logger.warning("agent code failed", exc_info=True, extra=extra)
        return instead
