"""Before a call begins: whether a client or a person answers it, and what that person is asked."""

from dataclasses import dataclass, replace

from chat.agent.think import Think
from chat.core.loop.repeated_calls import DOOM_LOOP, LOOP_ERROR, cycle_of
from chat.turns.conf import turn_settings
from chat.turns.execution.reviewing import may_review, review
from chat.turns.execution.tool_call.call import TurnCall
from chat.turns.guarding.turn_guard import lets_run
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.asking import Judgement, judge_call, question_for, refusal_of
from tools_app.calls.selectors import has_begun
from tools_app.core.action_rules import error_output
from tools_app.core.tool_calls import CallStatus, ToolPause, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLeave:
    """The leave of a call that no person is asked about."""

    refused: ToolResult | None = None  # in place of a call that may not run
    used: JSONObject | None = None  # the rule that lets it run, for its details
    opens_secret: bool = False  # it may reach the secrets that it names


async def ask(this: TurnCall) -> ToolPause | CallLeave:
    """Whether a client or a person answers the call. No person is asked about an action that may not run."""
    if this.call.tool_name not in this.turn.tools:
        return CallLeave()
    judged = await judge_call(this.tool, this.call, this.context)
    if judged.denied is not None:
        return CallLeave(refused=judged.denied)
    if _is_looping(this):
        return await _ask_about_loop(this)
    if judged.must_ask:
        return await _ask_person(this, judged)
    if this.tool.is_client:
        return ToolPause(status=CallStatus.WAITING)
    return CallLeave(used=judged.used, opens_secret=judged.opens_secret)


async def _ask_person(this: TurnCall, judged: Judgement) -> ToolPause | CallLeave:
    turn, tool = this.turn, this.tool
    is_reviewed = judged.is_by_tool and may_review(turn.agent, tool)
    may_have_begun = judged.is_by_guard or judged.verdict is not None or turn.facts.has_rules or is_reviewed
    if may_have_begun and await db(has_begun, turn.facts.turn_id, this.call.call_id):
        return CallLeave()  # it began before the text, or the rule, was there
    used = await review(turn.agent, turn.facts, tool, this.call, turn.view.messages) if is_reviewed else None
    if used is not None:
        return CallLeave(used=used)
    asked = await question(this)
    return asked if isinstance(asked, ToolPause) else CallLeave(refused=asked)


async def _ask_about_loop(this: TurnCall) -> ToolPause | CallLeave:
    if this.turn.facts.key.owner_id is None:
        return CallLeave(refused=ToolResult(output=LOOP_ERROR, is_error=True))
    asked = await question(this)
    if isinstance(asked, ToolPause):
        return replace(asked, question={**(asked.question or {}), "key": DOOM_LOOP})
    return CallLeave(refused=asked)


async def question(this: TurnCall) -> ToolPause | ToolResult:
    """The question to a person about a call, or the result of one that fails whatever that person says."""
    turn, call, tool = this.turn, this.call, this.tool
    refused = await refusal_of(tool, call, this.context)
    if refused:
        return ToolResult(output=refused, is_error=True)
    if tool.action is not None:
        refusal = await this.gate().refusal(tool.action, call.input)
        if refusal is not None:
            return ToolResult(output=error_output("ActionDenied", refusal))
    is_guarded = not lets_run(turn.guard.rules, tool) and await turn.guard.is_guarded(includes_step=True)
    asked = await question_for(tool, call, turn.guard.named() if is_guarded else ())
    asked = await turn.permissions.offering(asked, tool, call, this.context)
    return ToolPause(
        status=CallStatus.ASKED,
        approval_id=new_id("apr"),
        expires_seconds=_seconds(this) or None,
        question=replace(asked, request_id=turn.facts.request_id).to_json(),
    )


def _seconds(this: TurnCall) -> float:
    agent, action = this.turn.agent, this.tool.action
    seconds = agent.approval_seconds if isinstance(agent, Think) else None
    seconds = action.pause_seconds or seconds if action is not None else seconds
    return turn_settings.approval_seconds if seconds is None else seconds


def _is_looping(this: TurnCall) -> bool:
    """Whether the model makes the same calls again and again, and its class wants to know."""
    agent = this.turn.agent
    is_watched = isinstance(agent, Think) and agent.asks_about_loops
    return is_watched and cycle_of(this.turn.view.calls_up_to(this.call.call_id)) > 0
