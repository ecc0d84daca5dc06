"""The tools of one turn: checked against their schemas, gated by the agent's hooks, run by the executor."""

from collections.abc import AsyncIterator
from typing import Any

from chat.agent import Agent
from chat.core.hooks import Allow, Block, Substitute, ToolCallContext, ToolDecision, ToolOutcome
from chat.core.loop import StepView
from chat.turns.calling import decide_as, observe
from chat.turns.persistence import TurnFacts
from fibers.context import FiberContext
from fibers.errors import FiberError
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from tools_app.core.calls import ToolCall, ToolProgress, ToolResult
from tools_app.core.execution import CheckedCall, check_call, to_json
from tools_app.core.tool import ToolContext
from tools_app.core.toolset import Toolset
from tools_app.executor import execute
from tools_app.services import begin_call

DECISIONS: Any = Allow | Block | Substitute
INTERRUPTED = "The tool call was interrupted before a result was recorded."


class TurnTools:
    """Runs calls for the loop. What a tool or a hook raises becomes a result that the model sees."""

    def __init__(self, agent: Agent, toolset: Toolset, facts: TurnFacts, context: FiberContext, view: StepView) -> None:
        self._view = view
        self._agent = agent
        self._toolset = toolset
        self._facts = facts
        self._context = context

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        """Parse and validate without running."""
        return check_call(self._toolset, tool_name, arguments)

    async def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult]:
        """Decide, run, report. The row exists before the tool runs."""
        attempt = await db(self._begin, call)
        result = ToolResult(output=None)
        async for item in self._run(call, attempt):
            if isinstance(item, ToolProgress):
                yield item
            else:
                result = item
        await observe(
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
                step_number=self._view.number,
                messages=self._view.messages,
            ),
        )
        yield result

    def _begin(self, call: ToolCall) -> int:
        with self._context.fenced():
            return begin_call(call, turn_id=self._facts.turn_id, owner_id=self._facts.key.owner_id)

    async def _run(self, call: ToolCall, attempt: int) -> AsyncIterator[ToolProgress | ToolResult]:
        try:
            tool = self._toolset.get(call.tool_name)
            decision = await self._decide(call, attempt)
        except FiberError:
            raise  # the lease is lost: nothing that a hook says counts
        except ThinkError as error:
            yield ToolResult(output=error.message, is_error=True)
            return
        match decision:
            case Block(reason=reason):
                yield ToolResult(output=reason or f'Tool "{call.tool_name}" was blocked by beforeToolCall.')
                return
            case Substitute(output=output):
                yield _substituted(output)
                return
            case Allow(input=changed) if changed is not None:
                call = ToolCall(call_id=call.call_id, tool_name=call.tool_name, input=changed)
        if attempt > 1 and not tool.reruns:
            yield ToolResult(output=INTERRUPTED, is_error=True)
            return
        async for item in execute(tool, call, self._tool_context(call, attempt)):
            yield item

    async def _decide(self, call: ToolCall, attempt: int) -> ToolDecision:
        context = ToolCallContext(
            request_id=self._facts.request_id,
            call_id=call.call_id,
            tool_name=call.tool_name,
            input=call.input,
            attempt=attempt,
            step_number=self._view.number,
            messages=self._view.messages,
        )
        return await decide_as(self._agent, "before_tool_call", DECISIONS, context) or Allow()

    def _tool_context(self, call: ToolCall, attempt: int) -> ToolContext:
        return ToolContext(
            call_id=call.call_id,
            tool_name=call.tool_name,
            user_id=self._facts.key.owner_id,
            agent=self._facts.key.agent,
            instance_name=self._facts.key.name,
            turn_id=self._facts.turn_id,
            attempt=attempt,
            idempotency_key=f"{self._facts.turn_id}:{call.call_id}",
            shared=self._view.shared,
        )


def _substituted(output: object) -> ToolResult:
    try:
        return ToolResult(output=to_json(output))
    except (TypeError, ValueError) as error:
        return ToolResult(output=str(error), is_error=True)
