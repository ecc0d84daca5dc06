"""The tools of one turn: checked against their schemas, gated by people and by hooks, run by the executor.

A client's call and one that a person must approve are handed out: the turn ends without a result for them, and the
answer continues the conversation (`chat/turns/admission/tool_answers.py`). The hooks run for calls that run here, after
the approval.
"""

import functools
from collections.abc import AsyncIterator
from dataclasses import replace

from chat.agent.base import Agent
from chat.agent.think import Think
from chat.core.loop.hooks import (
    Allow,
    AuthorizationContext,
    Block,
    Substitute,
    ToolCallContext,
    ToolDecision,
    ToolOutcome,
)
from chat.core.loop.loop import StepView
from chat.core.loop.repeated_calls import DOOM_LOOP, LOOP_ERROR, cycle_of
from chat.core.loop.reply_chunks import recorded_reply
from chat.files.reply_parts import CallReplies, ReplyRoom
from chat.files.tool_outputs import CallPlace, keep_files, keep_whole, seen_files
from chat.turns.conf import turn_settings
from chat.turns.execution.assembly import Assembled, MakeAgent
from chat.turns.execution.code.inner_calls import TurnInnerCalls
from chat.turns.execution.reviewing import may_review, review
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.actions_above import asked_above
from chat.turns.guarding.turn_guard import lets_run
from chat.turns.guarding.turn_rules import TurnRules
from chat.user_code.authorization import ActionGate
from chat.user_code.call_hook import AgentCodeFailed, ask_hook, notify_hook
from fibers.context import FiberContext
from fibers.errors import FiberError
from fibers.waits import Wait, WaitEnd
from sessions_app.core.messages import call_texts
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from tools_app.actions.run_action import RunAction
from tools_app.calls.asking import judge_call, question_for, refusal_of
from tools_app.calls.run import execute
from tools_app.calls.selectors import has_begun
from tools_app.calls.services import begin_call, close_cut_calls, close_inner_calls
from tools_app.core.action_rules import error_output
from tools_app.core.call_check import CheckedCall, check_call, to_json
from tools_app.core.deferral import WrappedCall
from tools_app.core.output_limits import OutputLimit, cut_output
from tools_app.core.permissions.rules import RULE
from tools_app.core.tool import CallGuard, Tool, ToolContext
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolProgress, ToolResult
from tools_app.core.toolset import Toolset

APPROVED_AS_IT_IS = "A person approved this action as it was; its input cannot be changed any more."


class TurnTools:
    """Runs tool calls for the loop. Exceptions of tools and hooks become results for the model."""

    def __init__(
        self, assembled: Assembled, facts: TurnFacts, context: FiberContext, view: StepView, make_agent: MakeAgent
    ) -> None:
        self.view = view
        self._make_agent = make_agent
        self.agent: Agent = assembled.agent
        self._deferral = assembled.deferral
        self._toolset = assembled.deferral.all
        self._reader = assembled.reader
        self.guard = assembled.guard
        self.key = facts.key
        self._runnable = Toolset(self._toolset, [] if assembled.reader is None else [assembled.reader])
        self.prompt = assembled.prompt
        self.permissions = TurnRules(facts.instance, facts.key, has_stored=facts.has_rules, author=facts.author)
        self._used: dict[str, JSONObject | None] = {}  # the rules that let calls run
        self._open: set[str] = set()  # calls that may reach the secrets that they name
        self._facts = facts
        self._context = context
        self._reply_room = ReplyRoom(len(recorded_reply(dict(context.records()))))

    def repair(self, tool_name: str) -> str:
        """The name of the tool that a model meant."""
        return self._toolset.repaired(tool_name)

    def unwrap(self, tool_name: str, arguments: str) -> WrappedCall | None:
        """The call that is made through another tool, as one of the tool that it is about; nothing for any other."""
        return self._deferral.unwrap(tool_name, arguments)

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        """Parse and validate without running."""
        is_read = self._reader is not None and tool_name == self._reader.name
        return (
            check_call(self._runnable, tool_name, arguments) if is_read else self._deferral.check(tool_name, arguments)
        )

    async def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult | ToolPause]:
        """Hand out, or run and report. The row exists before the tool runs."""
        pause = await self._pause(call)
        if isinstance(pause, ToolPause):
            yield pause
            return
        used = self._used.pop(call.call_id, None)
        async for item in self.run_here(call, self._facts.turn_id, refused=pause):
            is_by_rule = used is not None and isinstance(item, ToolResult)
            yield replace(item, details={**item.details, RULE: used}) if is_by_rule else item

    async def run_here(
        self, call: ToolCall, turn_id: str, *, is_approved: bool = False, refused: ToolResult | None = None
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run a call whose row is that of a turn, this one's or an earlier one's. No approval is requested any more.

        `refused`: the result of a call that may not run.
        """
        attempt = await db(self._begin, call, turn_id)
        result = ToolResult(output=None)
        inner = self._inner(call, turn_id)
        guard = self.guard.for_call(call.call_id, inner.message_id, includes_step=True, is_approved=is_approved)
        context = replace(
            self._tool_context(call, attempt, inner, guard), is_approved=is_approved or call.call_id in self._open
        )
        items = self._run(call, context, inner, is_approved=is_approved) if refused is None else _only(refused)
        async for item in items:
            if isinstance(item, ToolProgress):
                cut = cut_output(item.output, self._limit_of(call))
                yield item if cut is None else replace(item, output=cut.output)
            else:
                result = await self._kept(call, await inner.complete(item), turn_id)
        await inner.close(was_cut=attempt > 1)
        await self.report(call, result)
        yield result

    async def report(self, call: ToolCall, result: ToolResult) -> None:
        """Have the agent see how a call ended."""
        await notify_hook(
            self.agent,
            "after_tool_call",
            ToolOutcome(
                request_id=self._facts.request_id,
                call_id=call.call_id,
                tool_name=call.tool_name,
                input=call.input,
                success=not result.is_error,
                output=result.output,
                duration_ms=result.duration_ms,
                error=str(result.output) if result.is_error else None,
                step_number=self.view.number,
                messages=self.view.messages,
            ),
        )

    async def _kept(self, call: ToolCall, result: ToolResult, turn_id: str) -> ToolResult:
        """The result as it is stored: its output within its limit, its files and what was cut kept beside it."""
        cut = cut_output(result.output, self._limit_of(call))
        if cut is None and not result.media:
            return result
        key = self._facts.key
        place = CallPlace(owner_id=key.owner_id, instance_id=key.instance_id, turn_id=turn_id, call_id=call.call_id)
        details = dict(result.details)
        if cut is not None:
            details["whole"] = await db(keep_whole, place, result.output, cut)
        if result.media:
            entries = await db(keep_files, place, result.media)
            details["attachments"] = [*details.get("attachments", ()), *entries]
            self.prompt.add_files(seen_files(entries, result.media))
        return replace(result, output=result.output if cut is None else cut.output, details=details, media=())

    def _limit_of(self, call: ToolCall) -> OutputLimit:
        tool = self._runnable.get(call.tool_name) if call.tool_name in self._runnable else None
        if tool is not None and tool.output_limit is not None:
            return tool.output_limit
        return OutputLimit(
            lines=turn_settings.tool_output_lines or None, max_bytes=turn_settings.tool_output_bytes or None
        )

    async def _pause(self, call: ToolCall) -> ToolPause | ToolResult | None:
        """Whether a client or a person answers this call. No person is asked about an action that may not run."""
        if call.tool_name not in self._toolset:
            return None
        tool = self._toolset.get(call.tool_name)
        guard = self.guard.for_call(call.call_id, self._facts.assistant_id, includes_step=False)
        context = self._tool_context(call, 1, self._inner(call, self._facts.turn_id), guard)
        judged = await judge_call(tool, call, context)
        if judged.denied is not None:
            return judged.denied
        if _is_looping(self.agent, self.view, call):
            has_person = self._facts.key.owner_id is not None
            return _about_loop(await self.question(tool, call, context)) if has_person else _told_of_loop()
        if not judged.must_ask and tool.is_client:
            return ToolPause(status=CallStatus.WAITING)
        if not judged.must_ask:
            self._used[call.call_id] = judged.used
            if judged.opens_secret:
                self._open.add(call.call_id)
            return None
        is_reviewed = judged.is_by_tool and may_review(self.agent, tool)
        may_have_begun = judged.is_by_guard or judged.verdict is not None or self._facts.has_rules or is_reviewed
        if may_have_begun and await db(has_begun, self._facts.turn_id, call.call_id):
            return None  # it began before the text, or the rule, was there
        if is_reviewed:
            used = await review(self.agent, self._facts, tool, call, self.view.messages)
            if used is not None:
                self._used[call.call_id] = used
                return None
        return await self.question(tool, call, context)

    async def question(self, tool: Tool, call: ToolCall, context: ToolContext) -> ToolPause | ToolResult:
        """The question to a person about a call, or the result of one that fails whatever that person says."""
        refused = await refusal_of(tool, call, context)
        if refused:
            return ToolResult(output=refused, is_error=True)
        if tool.action is not None:
            refusal = await self._gate(call).refusal(tool.action, call.input)
            if refusal is not None:
                return ToolResult(output=error_output("ActionDenied", refusal))
        seconds = self.agent.approval_seconds if isinstance(self.agent, Think) else None
        seconds = tool.action.pause_seconds or seconds if tool.action is not None else seconds
        seconds = turn_settings.approval_seconds if seconds is None else seconds
        is_guarded = not lets_run(self.guard.rules, tool) and await self.guard.is_guarded(includes_step=True)
        question = await question_for(tool, call, self.guard.named() if is_guarded else ())
        question = await self.permissions.offering(question, tool, call, context)
        return ToolPause(
            status=CallStatus.ASKED,
            approval_id=new_id("apr"),
            expires_seconds=seconds or None,
            question=replace(question, request_id=self._facts.request_id).to_json(),
        )

    def _begin(self, call: ToolCall, turn_id: str) -> int:
        with self._context.fenced():
            return begin_call(call, turn_id=turn_id, owner_id=self._facts.key.owner_id)

    def _gate(self, call: ToolCall, *, is_approved: bool = False) -> ActionGate:
        facts = self._facts
        turn = AuthorizationContext(
            request_id=facts.request_id,
            turn_id=facts.turn_id,
            user_id=facts.user_id,
            continuation=facts.is_continuation,
            body=facts.body,
        )
        above = functools.partial(asked_above, facts.key, turn, self._make_agent)
        return ActionGate(agent=self.agent, turn=turn, call_id=call.call_id, is_approved=is_approved, above=above)

    async def perform(
        self, tool: Tool, call: ToolCall, context: ToolContext, turn_id: str, *, is_approved: bool
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run the tool with what it can attach to the reply, and the ledger for an action."""
        key = self._facts.key
        replies = CallReplies(self._reply_room, key, call.call_id)
        act = RunAction(
            scope=key.instance_id,
            owner_id=key.owner_id,
            turn_id=turn_id,
            authorize=self._gate(call, is_approved=is_approved).refusal,
            replies=replies,
        )
        self._context.passed(f"tool:{tool.name}:{call.call_id}:begins")
        repeats_outages = tool.reruns and self._context.retries < self._context.max_retries
        given = replace(context, attach=replies.attach, act=act, repeats_outages=repeats_outages)
        async for item in execute(tool, call, given):
            if isinstance(item, ToolProgress):
                yield item
                continue
            self._context.passed(f"tool:{tool.name}:{call.call_id}:returned")
            if item.is_error:
                replies.drop()
                yield item
            else:
                yield replace(item, reply=tuple(await replies.resolve()))

    async def allowed(self, tool: Tool, call: ToolCall, attempt: int, *, is_approved: bool) -> ToolCall | ToolResult:
        """The call as the agent lets it run, or the result in its place."""
        try:
            decision = await self._decide(call, attempt)
        except FiberError:
            raise  # the lease is lost: nothing that a hook says counts
        except ThinkError as error:
            return _failed(error)
        match decision:
            case Block(reason=reason):
                return ToolResult(output=reason or f'Tool "{call.tool_name}" was blocked by beforeToolCall.')
            case Substitute(output=output):
                return _substituted(output)
            case Allow(input=changed) if changed is not None:
                if is_approved and tool.action is not None and fingerprint(changed) != fingerprint(call.input):
                    return ToolResult(output=error_output("ActionDenied", APPROVED_AS_IT_IS))
                return replace(call, input=changed)
        return call

    async def _run(
        self, call: ToolCall, context: ToolContext, inner: TurnInnerCalls, *, is_approved: bool
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        try:
            tool = self._runnable.get(call.tool_name)
        except ThinkError as error:
            yield _failed(error)
            return
        allowed = await self.allowed(tool, call, context.attempt, is_approved=is_approved)
        if isinstance(allowed, ToolResult):
            yield allowed
            return
        was_cut = context.attempt > 1 and not _was_waiting(self._context, call)
        if was_cut and not tool.reruns:
            yield ToolResult(output=call_texts.INTERRUPTED, is_error=True)
            return
        async for item in self.perform(tool, allowed, context, inner.turn_id, is_approved=is_approved):
            yield item

    def _inner(self, call: ToolCall, turn_id: str) -> TurnInnerCalls:
        return TurnInnerCalls(tools=self, facts=self._facts, fiber=self._context, outer=call, turn_id=turn_id)

    async def _wait(self, call: ToolCall, wait: Wait) -> WaitEnd:
        key = f"{call.call_id}:{wait.key}"[:150]
        known = replace(wait, key=key, kind=wait.kind[:40], label=wait.label[:200], call_id=call.call_id)
        return await self._context.wait(known)

    async def _decide(self, call: ToolCall, attempt: int) -> ToolDecision:
        context = ToolCallContext(
            request_id=self._facts.request_id,
            call_id=call.call_id,
            tool_name=call.tool_name,
            input=call.input,
            attempt=attempt,
            step_number=self.view.number,
            messages=self.view.messages,
        )
        return await ask_hook(self.agent, "before_tool_call", context) or Allow()

    def _tool_context(self, call: ToolCall, attempt: int, inner: TurnInnerCalls, guard: CallGuard) -> ToolContext:
        # The key is that of the turn that made the call: another one may run it, and a further one run it again.
        return ToolContext(
            call_id=call.call_id,
            tool_name=call.tool_name,
            user_id=self._facts.user_id,
            agent=self._facts.key.agent,
            instance_name=self._facts.key.name,
            turn_id=self._facts.turn_id,
            attempt=attempt,
            idempotency_key=f"{inner.turn_id}:{call.call_id}",
            shared=self.view.shared,
            waiter=functools.partial(self._wait, call),
            asker=inner.ask,
            inner=inner,
            noter=guard.note,
            guard=guard,
            permissions=self.permissions,
        )


def _is_looping(agent: Agent, view: StepView, call: ToolCall) -> bool:
    """Whether the model makes the same calls again and again, and its class wants to know."""
    is_watched = isinstance(agent, Think) and agent.asks_about_loops
    return is_watched and cycle_of(view.calls_up_to(call.call_id)) > 0


def _about_loop(asked: ToolPause | ToolResult) -> ToolPause | ToolResult:
    """The question about a call, asked because it closes a loop."""
    if isinstance(asked, ToolResult):
        return asked
    return replace(asked, question={**(asked.question or {}), "key": DOOM_LOOP})


def _told_of_loop() -> ToolResult:
    """The result of such a call where there is no person to ask."""
    return ToolResult(output=LOOP_ERROR, is_error=True)


def _was_waiting(context: FiberContext, call: ToolCall) -> bool:
    """Whether this call goes on after a wait: nothing cut it."""
    return any(wait["call_id"] == call.call_id for wait in context.waited_for)


def close_cut(context: FiberContext, turn_id: str) -> list[str]:
    """Settle the calls that still ran when their turn was stopped or given up, and those within them. Fenced.

    Returns the ids of those that a model made.
    """
    with context.fenced():
        close_inner_calls(turn_id, call_texts.INTERRUPTED)
        return close_cut_calls(turn_id, call_texts.INTERRUPTED)


def _failed(error: ThinkError) -> ToolResult:
    """The result of a call that an error kept from running, with its reason for the model."""
    return ToolResult(output=error.reason if isinstance(error, AgentCodeFailed) else error.message, is_error=True)


async def _only(result: ToolResult) -> AsyncIterator[ToolResult]:
    yield result


def _substituted(output: object) -> ToolResult:
    try:
        return ToolResult(output=to_json(output))
    except (TypeError, ValueError) as error:
        return ToolResult(output=str(error), is_error=True)
