"""Whether a person must approve a call, and what that person is asked, as the tool's author says.

Used for the calls of a model and for those of code that a model wrote.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from django.utils import timezone

from fibers.errors import FiberError
from thinkproject.kernel.aio import call_user_code
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.guard.reach import held_back
from tools_app.core.guard.rules import SeenText
from tools_app.core.permissions.rules import RULE, CallFacts, RuleAction, RuleVerdict
from tools_app.core.permissions.subjects import ANYTHING, UNKNOWN, Subject, text_subject
from tools_app.core.questions import Question, fill_in, one_line
from tools_app.core.tool import (
    AnyRule,
    CheckFunction,
    PatternFunction,
    RuleFunction,
    TextFunction,
    Tool,
    ToolContext,
)
from tools_app.core.tool_calls import ToolCall, ToolResult

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

DENIED: Final = (
    "Refused by the rule {rule!r}. Do not try it in another way: do something else, or say what you would need."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The judgement of a call before it runs.

    `must_ask`: a person decides. `is_by_guard`: the injection guard alone asks. `verdict`: of the rules, where they
    decided; a denial is a result for the model (`denied`). `facts`: what the rules went by, where there are rules.
    """

    must_ask: bool
    is_by_guard: bool = False
    verdict: RuleVerdict | None = None
    facts: CallFacts | None = None

    @property
    def denied(self) -> ToolResult | None:
        """The result in place of a call that a rule refuses."""
        if self.verdict is None or self.verdict.action is not RuleAction.DENY:
            return None
        rule = self.verdict.rule
        return ToolResult(output=DENIED.format(rule=rule.name), is_error=True, details={RULE: rule.used()})

    @property
    def is_by_tool(self) -> bool:
        """Whether the tool's own rule alone has a person asked."""
        return self.must_ask and not self.is_by_guard and self.verdict is None

    @property
    def opens_secret(self) -> bool:
        """Whether a rule lets a call run that names a secret: then it may reach that secret."""
        return self.used is not None and self.facts is not None and any(each.is_secret for each in self.facts.subjects)

    @property
    def used(self) -> JSONObject | None:
        """The rule that lets the call run without a person's decision, for its details; `None` where none does."""
        is_allowed = self.verdict is not None and self.verdict.action is RuleAction.ALLOW and not self.must_ask
        return self.verdict.rule.used() if self.verdict is not None and is_allowed else None


async def judge_call(tool: Tool, call: ToolCall, context: ToolContext) -> Judgement:
    """Judge a call by the rules about calls, the tool's own rule and the injection guard.

    An allowance takes the place of the tool's own rule and of nothing else. A rule that fails or takes too long leaves
    it to the person.
    """
    facts, verdict = None, None
    if context.permissions is not None and (tool.asks_person or context.permissions.may_decide(tool)):
        facts = await facts_of(tool, call, context)
        verdict = await context.permissions.judge(facts)
    if verdict is not None and verdict.action is RuleAction.DENY:
        return Judgement(must_ask=False, verdict=verdict, facts=facts)
    if tool.asks_person or verdict is None or verdict.action is RuleAction.ASK:
        is_asked = tool.asks_person or verdict is not None or await _asks(tool, call, context)
    else:
        is_asked = False
    is_guarded = not is_asked and context.guard is not None and await context.guard.must_ask(tool)
    judged = Judgement(must_ask=is_asked or is_guarded, is_by_guard=is_guarded, verdict=verdict, facts=facts)
    if judged.must_ask and facts is None and context.permissions is not None:
        return await _judged_again(judged, tool, call, context)
    return judged


async def _judged_again(judged: Judgement, tool: Tool, call: ToolCall, context: ToolContext) -> Judgement:
    """The same with rules that were stored since the turn began: a person is about to be asked."""
    assert context.permissions is not None, "is checked by the caller"
    facts = await facts_of(tool, call, context)
    verdict = (await context.permissions.rules()).judge(facts, timezone.now())
    is_lifted = verdict is not None and verdict.action is RuleAction.ALLOW and not judged.is_by_guard
    is_guarded = is_lifted and context.guard is not None and await context.guard.must_ask(tool)
    is_denied = verdict is not None and verdict.action is RuleAction.DENY
    must_ask = not is_denied and (not is_lifted or is_guarded)
    return Judgement(
        must_ask=must_ask, is_by_guard=must_ask and (judged.is_by_guard or is_guarded), verdict=verdict, facts=facts
    )


async def _asks(tool: Tool, call: ToolCall, context: ToolContext) -> bool:
    """Whether the tool's own rule has a person decide."""
    rule = tool.needs_approval
    if isinstance(rule, bool):
        return rule
    return await _answered(tool, "needs_approval", _is_true(rule, call, context), instead=True)


async def facts_of(tool: Tool, call: ToolCall, context: ToolContext) -> CallFacts:
    """The facts of a call that rules go by. A function of the tool's that fails leaves unknown what it is about."""
    subjects: tuple[Subject, ...] = (ANYTHING,)
    if tool.patterns is not None:
        subjects = await _answered(tool, "patterns", _subjects(tool.patterns, call, context), instead=(UNKNOWN,))
    return CallFacts(
        name=tool.name,
        permission=tool.permission,
        source=tool.source,
        changes=not tool.read_only,
        is_high_risk=tool.action is not None and tool.action.risk == "high",
        subjects=subjects,
    )


async def _subjects(function: PatternFunction, call: ToolCall, context: ToolContext) -> tuple[Subject, ...]:
    given = await call_user_code(function, call.input, context)
    return tuple(text_subject(item) if isinstance(item, str) else item for item in given) or (UNKNOWN,)


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
        choices=tuple(call.input["questions"]) if tool.asks_person else (),
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
