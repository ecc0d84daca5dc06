"""The tools of one turn, for the loop: checked against their schemas, and run in six steps (`tool_call/`).

A client's call and one that a person must approve are handed out: the turn ends without a result for them, and the
answer continues the conversation (`chat/turns/admission/tool_answers.py`). The hooks run for calls that run here, after
the approval.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from chat.core.loop.loop import StepView
from chat.core.loop.reply_chunks import recorded_reply
from chat.files.reply_parts import ReplyRoom
from chat.turns.execution.assembly import Assembled, MakeAgent
from chat.turns.execution.tool_call.ask import CallLeave, ask
from chat.turns.execution.tool_call.call import CallingTurn, TurnCall
from chat.turns.execution.tool_call.decide import decide
from chat.turns.execution.tool_call.inner_calls import TurnInnerCalls
from chat.turns.execution.tool_call.keep import keep, shown
from chat.turns.execution.tool_call.perform import perform
from chat.turns.execution.tool_call.report import report
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.turn_rules import TurnRules
from fibers.context import FiberContext
from fibers.waits import Wait, WaitEnd
from thinkproject.kernel.aio import db
from tools_app.calls.services import begin_call
from tools_app.core.call_check import CheckedCall, check_call
from tools_app.core.deferral import WrappedCall
from tools_app.core.permissions.rules import RULE
from tools_app.core.tool import ToolContext
from tools_app.core.tool_calls import ToolCall, ToolPause, ToolProgress, ToolResult
from tools_app.core.toolset import Toolset


class TurnTools:
    """Runs tool calls for the loop. Exceptions of tools and hooks become results for the model."""

    def __init__(
        self, assembled: Assembled, facts: TurnFacts, context: FiberContext, view: StepView, make_agent: MakeAgent
    ) -> None:
        self._deferral = assembled.deferral
        self._reader = assembled.reader
        self.turn = CallingTurn(
            agent=assembled.agent,
            facts=facts,
            fiber=context,
            guard=assembled.guard,
            permissions=TurnRules(facts.instance, facts.key, has_stored=facts.has_rules, author=facts.author),
            prompt=assembled.prompt,
            view=view,
            tools=assembled.deferral.all,
            runnable=Toolset(assembled.deferral.all, [] if assembled.reader is None else [assembled.reader]),
            reply_room=ReplyRoom(len(recorded_reply(dict(context.records())))),
            make_agent=make_agent,
        )

    def repair(self, tool_name: str) -> str:
        """The name of the tool that a model meant."""
        return self.turn.tools.repaired(tool_name)

    def unwrap(self, tool_name: str, arguments: str) -> WrappedCall | None:
        """The call that is made through another tool, as one of the tool that it is about; nothing for any other."""
        return self._deferral.unwrap(tool_name, arguments)

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        """Parse and validate without running."""
        if self._reader is not None and tool_name == self._reader.name:
            return check_call(self.turn.runnable, tool_name, arguments)
        return self._deferral.check(tool_name, arguments)

    async def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult | ToolPause]:
        """Ask; then begin, decide, perform, keep and report. The row exists before the tool runs."""
        inner = TurnInnerCalls(turn=self.turn, outer=call, turn_id=self.turn.facts.turn_id)
        this = self._made(call, inner)
        leave = await ask(this)
        if isinstance(leave, ToolPause):
            yield leave
            return
        async for item in self._run_on(this, inner, leave):
            yield item

    async def run_approved(self, call: ToolCall, turn_id: str) -> AsyncIterator[ToolProgress | ToolResult]:
        """The same without the question, for a call of an earlier turn that a person has approved."""
        inner = TurnInnerCalls(turn=self.turn, outer=call, turn_id=turn_id)
        async for item in self._run_on(replace(self._made(call, inner), is_approved=True), inner, CallLeave()):
            yield item

    async def _run_on(
        self, this: TurnCall, inner: TurnInnerCalls, leave: CallLeave
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        this = await self._begun(this, inner, leave)
        decided = leave.refused or await decide(this)
        result = decided if isinstance(decided, ToolResult) else ToolResult(output=None)
        if isinstance(decided, TurnCall):
            async for item in perform(decided):
                if isinstance(item, ToolProgress):
                    yield shown(this, item)
                else:
                    result = item
        result = await keep(this, await inner.complete(result))
        await inner.close(was_cut=this.context.attempt > 1)
        await report(this, result)
        yield result if leave.used is None else replace(result, details={**result.details, RULE: leave.used})

    async def _begun(self, this: TurnCall, inner: TurnInnerCalls, leave: CallLeave) -> TurnCall:
        """The call with its row. From here on the guard counts what its own step has seen."""
        attempt = await db(_begin, this)
        guard = inner.guard.begun(is_approved=this.is_approved)
        is_open = this.is_approved or leave.opens_secret
        context = replace(this.context, attempt=attempt, is_approved=is_open, guard=guard, noter=guard.note)
        was_waiting = any(wait["call_id"] == this.call.call_id for wait in self.turn.fiber.waited_for)
        return replace(this, context=context, was_cut=attempt > 1 and not was_waiting)

    def _made(self, call: ToolCall, inner: TurnInnerCalls) -> TurnCall:
        facts = self.turn.facts
        # The key is that of the turn that made the call: another one may run it, and a further one run it again.
        context = ToolContext(
            call_id=call.call_id,
            tool_name=call.tool_name,
            user_id=facts.user_id,
            agent=facts.key.agent,
            instance_name=facts.key.name,
            turn_id=facts.turn_id,
            attempt=1,
            idempotency_key=f"{inner.turn_id}:{call.call_id}",
            shared=self.turn.view.shared,
            waiter=partial(_wait, self.turn.fiber, call),
            asker=inner.ask,
            inner=inner,
            noter=inner.guard.note,
            guard=inner.guard,
            permissions=self.turn.permissions,
        )
        found = self.turn.runnable.get(call.tool_name) if call.tool_name in self.turn.runnable else None
        return TurnCall(turn=self.turn, call=call, found=found, context=context, turn_id=inner.turn_id)


def _begin(this: TurnCall) -> int:
    with this.turn.fiber.fenced():
        return begin_call(this.call, turn_id=this.turn_id, owner_id=this.turn.facts.key.owner_id)


async def _wait(fiber: FiberContext, call: ToolCall, wait: Wait) -> WaitEnd:
    key = f"{call.call_id}:{wait.key}"[:150]
    return await fiber.wait(replace(wait, key=key, kind=wait.kind[:40], label=wait.label[:200], call_id=call.call_id))
