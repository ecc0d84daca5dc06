"""The end of a call, for its agent: the hook `after_tool_call`."""

from chat.core.loop.hooks import ToolOutcome
from chat.turns.execution.tool_call.call import TurnCall
from chat.user_code.call_hook import notify_hook
from tools_app.core.tool_calls import ToolResult


async def report(this: TurnCall, result: ToolResult) -> None:
    """Have the agent see how a call ended."""
    call, view = this.call, this.turn.view
    outcome = ToolOutcome(
        request_id=this.turn.facts.request_id,
        call_id=call.call_id,
        tool_name=call.tool_name,
        input=call.input,
        success=not result.is_error,
        output=result.output,
        duration_ms=result.duration_ms,
        error=str(result.output) if result.is_error else None,
        step_number=view.number,
        messages=view.messages,
    )
    await notify_hook(this.turn.agent, "after_tool_call", outcome)
