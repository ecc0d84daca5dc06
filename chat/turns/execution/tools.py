"""The tools of one turn: checked against their schemas, gated by people and by hooks, run by the executor.

A client's call and one that a person must approve are handed out: the turn ends without a result for them, and the
answer continues the conversation (`chat/turns/admission/tool_answers.py`). The hooks run for calls that run here, after
the approval.
"""

import functools
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from chat.agent.base import Agent
from chat.agent.think import Think
from chat.conf import chat_settings
from chat.core.context.result_files import is_seen
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
from chat.core.loop.reply_chunks import recorded_reply
from chat.core.model.language_model import FileContent
from chat.files.reply_parts import CallReplies, ReplyRoom
from chat.files.tool_outputs import CallPlace, keep_files, keep_whole
from chat.turns.execution.assembly import Assembled
from chat.turns.execution.turn_facts import TurnFacts
from chat.user_code.authorization import ActionGate
from chat.user_code.call_hook import AgentCodeFailed, call_hook_typed, notify_hook
from fibers.context import FiberContext
from fibers.errors import FiberError
from fibers.waits import Wait, WaitEnd
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from tools_app.actions.running import RunAction
from tools_app.asking import must_ask, question_for
from tools_app.core.action_rules import error_output
from tools_app.core.execution import CheckedCall, check_call, to_json
from tools_app.core.output_limits import OutputLimit, cut_output
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolProgress, ToolResult
from tools_app.core.tool_output import Media
from tools_app.core.toolset import Toolset
from tools_app.executor import execute
from tools_app.services import begin_call, close_cut_calls

DECISIONS: Any = Allow | Block | Substitute
APPROVED_AS_IT_IS = "A person approved this action as it was; its input cannot be changed any more."
INTERRUPTED = "The tool call was interrupted before a result was recorded."


class TurnTools:
    """Runs tool calls for the loop. Exceptions of tools and hooks become results for the model."""

    def __init__(self, assembled: Assembled, facts: TurnFacts, context: FiberContext, view: StepView) -> None:
        self.view = view
        self._agent: Agent = assembled.agent
        self._toolset = assembled.toolset
        self._reader = assembled.reader
        self._runnable = Toolset(assembled.toolset, [] if assembled.reader is None else [assembled.reader])
        self._prompt = assembled.prompt
        self._facts = facts
        self._context = context
        self._reply_room = ReplyRoom(len(recorded_reply(dict(context.records()))))

    def repair(self, tool_name: str) -> str:
        """The name of the tool that a model meant."""
        return self._toolset.repaired(tool_name)

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        """Parse and validate without running."""
        is_read = self._reader is not None and tool_name == self._reader.name
        return check_call(self._runnable if is_read else self._toolset, tool_name, arguments)

    async def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult | ToolPause]:
        """Hand out, or run and report. The row exists before the tool runs."""
        pause = await self._pause(call)
        if isinstance(pause, ToolPause):
            yield pause
            return
        async for item in self.run_here(call, self._facts.turn_id, refused=pause):
            yield item

    async def run_here(
        self, call: ToolCall, turn_id: str, *, is_approved: bool = False, refused: ToolResult | None = None
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run a call whose row is that of a turn, this one's or an earlier one's. No approval is requested any more.

        `refused`: the result of a call that may not run.
        """
        attempt = await db(self._begin, call, turn_id)
        result = ToolResult(output=None)
        items = self._run(call, attempt, turn_id, is_approved=is_approved) if refused is None else _only(refused)
        async for item in items:
            if isinstance(item, ToolProgress):
                cut = cut_output(item.output, self._limit_of(call))
                yield item if cut is None else replace(item, output=cut.output)
            else:
                result = await self._kept(call, item, turn_id)
        await notify_hook(
            self._agent,
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
        yield result

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
            details["attachments"] = await db(keep_files, place, result.media)
            self._prompt.add_files(_seen_files(details["attachments"], result.media))
        return replace(result, output=result.output if cut is None else cut.output, details=details, media=())

    def _limit_of(self, call: ToolCall) -> OutputLimit:
        tool = self._runnable.get(call.tool_name) if call.tool_name in self._runnable else None
        if tool is not None and tool.output_limit is not None:
            return tool.output_limit
        return OutputLimit(
            lines=chat_settings.tool_output_lines or None, max_bytes=chat_settings.tool_output_bytes or None
        )

    async def _pause(self, call: ToolCall) -> ToolPause | ToolResult | None:
        """Whether a client or a person answers this call. No person is asked about an action that may not run."""
        if call.tool_name not in self._toolset:
            return None
        tool = self._toolset.get(call.tool_name)
        if tool.is_client:
            return ToolPause(status=CallStatus.WAITING)
        if not await must_ask(tool, call, self._tool_context(call, 1, self._facts.turn_id)):
            return None
        if tool.action is not None:
            refusal = await self._gate(call).refusal(tool.action, call.input)
            if refusal is not None:
                return ToolResult(output=error_output("ActionDenied", refusal))
        seconds = self._agent.approval_seconds if isinstance(self._agent, Think) else None
        seconds = tool.action.pause_seconds or seconds if tool.action is not None else seconds
        seconds = chat_settings.approval_seconds if seconds is None else seconds
        question = await question_for(tool, call)
        return ToolPause(
            status=CallStatus.ASKED,
            approval_id=new_id("apr"),
            expires_seconds=seconds or None,
            question=question.to_json(),
        )

    def _begin(self, call: ToolCall, turn_id: str) -> int:
        with self._context.fenced():
            return begin_call(call, turn_id=turn_id, owner_id=self._facts.key.owner_id)

    def _gate(self, call: ToolCall, *, is_approved: bool = False) -> ActionGate:
        facts = self._facts
        turn = AuthorizationContext(
            request_id=facts.request_id,
            turn_id=facts.turn_id,
            user_id=facts.key.owner_id,
            continuation=facts.is_continuation,
            body=facts.body,
        )
        return ActionGate(agent=self._agent, turn=turn, call_id=call.call_id, is_approved=is_approved)

    async def _execute(
        self, tool: Tool, call: ToolCall, context: ToolContext, gate: ActionGate, turn_id: str
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run the tool with what it can attach to the reply, and the ledger for an action."""
        key = self._facts.key
        replies = CallReplies(self._reply_room, key, call.call_id)
        act = RunAction(
            scope=key.instance_id,
            owner_id=key.owner_id,
            turn_id=turn_id,
            authorize=gate.refusal,
            replies=replies,
        )
        async for item in execute(tool, call, replace(context, attach=replies.attach, act=act)):
            if isinstance(item, ToolProgress):
                yield item
            elif item.is_error:
                replies.drop()
                yield item
            else:
                yield replace(item, reply=tuple(await replies.resolve()))

    async def _run(
        self, call: ToolCall, attempt: int, turn_id: str, *, is_approved: bool
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        try:
            tool = self._runnable.get(call.tool_name)
            decision = await self._decide(call, attempt)
        except FiberError:
            raise  # the lease is lost: nothing that a hook says counts
        except ThinkError as error:
            text = error.reason if isinstance(error, AgentCodeFailed) else error.message  # for the model
            yield ToolResult(output=text, is_error=True)
            return
        match decision:
            case Block(reason=reason):
                yield ToolResult(output=reason or f'Tool "{call.tool_name}" was blocked by beforeToolCall.')
                return
            case Substitute(output=output):
                yield _substituted(output)
                return
            case Allow(input=changed) if changed is not None:
                if is_approved and tool.action is not None and fingerprint(changed) != fingerprint(call.input):
                    yield ToolResult(output=error_output("ActionDenied", APPROVED_AS_IT_IS))
                    return
                call = ToolCall(call_id=call.call_id, tool_name=call.tool_name, input=changed)
        was_cut = attempt > 1 and not self._was_waiting(call)
        if was_cut and not tool.reruns:
            yield ToolResult(output=INTERRUPTED, is_error=True)
            return
        gate = self._gate(call, is_approved=is_approved)
        async for item in self._execute(tool, call, self._tool_context(call, attempt, turn_id), gate, turn_id):
            yield item

    def _was_waiting(self, call: ToolCall) -> bool:
        """Whether this call goes on after a wait: nothing cut it."""
        return any(wait["call_id"] == call.call_id for wait in self._context.waited_for)

    async def _wait(self, call: ToolCall, kind: str, label: str, key: str, seconds: float) -> WaitEnd:
        wait_key = f"{call.call_id}:{key or kind}"[:150]
        wait = Wait(key=wait_key, kind=kind[:40], label=label[:200], call_id=call.call_id, seconds=seconds)
        return await self._context.wait(wait)

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
        return await call_hook_typed(self._agent, "before_tool_call", DECISIONS, context) or Allow()

    def _tool_context(self, call: ToolCall, attempt: int, turn_id: str) -> ToolContext:
        # The key is that of the turn that made the call: another one may run it, and a further one run it again.
        return ToolContext(
            call_id=call.call_id,
            tool_name=call.tool_name,
            user_id=self._facts.key.owner_id,
            agent=self._facts.key.agent,
            instance_name=self._facts.key.name,
            turn_id=self._facts.turn_id,
            attempt=attempt,
            idempotency_key=f"{turn_id}:{call.call_id}",
            shared=self.view.shared,
            waiter=functools.partial(self._wait, call),
        )


def close_cut(context: FiberContext, turn_id: str) -> list[str]:
    """Settle the calls that still ran when their turn was stopped or given up. Returns their ids. Fenced."""
    with context.fenced():
        return close_cut_calls(turn_id, INTERRUPTED)


def _seen_files(entries: Sequence[JSONObject], media: Sequence[Media]) -> dict[str, FileContent]:
    """Files that models may be sent in the same turn, by their URL: they are at hand and need not be read."""
    return {
        entry["url"]: FileContent(media_type=entry["mediaType"], data=item.data, filename=entry["filename"])
        for entry, item in zip(entries, media, strict=True)
        if is_seen(str(entry.get("mediaType")))
    }


async def _only(result: ToolResult) -> AsyncIterator[ToolResult]:
    yield result


def _substituted(output: object) -> ToolResult:
    try:
        return ToolResult(output=to_json(output))
    except (TypeError, ValueError) as error:
        return ToolResult(output=str(error), is_error=True)
