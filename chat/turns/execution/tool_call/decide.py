"""The agent's word about a call that no person has to be asked about any more: the hook `before_tool_call`."""

from dataclasses import replace

from chat.core.loop.hooks import Allow, Block, Substitute, ToolCallContext, ToolDecision
from chat.turns.execution.tool_call.call import TurnCall
from chat.user_code.call_hook import AgentCodeFailed, ask_hook
from fibers.errors import FiberError
from sessions_app.core.messages import call_texts
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import fingerprint
from tools_app.core.action_rules import error_output
from tools_app.core.call_check import to_json
from tools_app.core.tool_calls import ToolResult
from tools_app.core.tool_names import unknown_tool_text

APPROVED_AS_IT_IS = "A person approved this action as it was; its input cannot be changed any more."


async def decide(this: TurnCall) -> TurnCall | ToolResult:
    """The call as the agent lets it run, or the result in its place."""
    if this.found is None:
        names = [tool.name for tool in this.turn.runnable]
        return ToolResult(output=unknown_tool_text(this.call.tool_name, names), is_error=True)
    try:
        decision = await _ask_agent(this)
    except FiberError:
        raise  # the lease is lost: nothing that a hook says counts
    except ThinkError as error:
        return ToolResult(output=error.reason if isinstance(error, AgentCodeFailed) else error.message, is_error=True)
    match decision:
        case Block(reason=reason):
            return ToolResult(output=reason or f'Tool "{this.call.tool_name}" was blocked by beforeToolCall.')
        case Substitute(output=output):
            return _substituted(output)
        case Allow(input=changed) if changed is not None:
            if (
                this.is_approved
                and this.tool.action is not None
                and fingerprint(changed) != fingerprint(this.call.input)
            ):
                return ToolResult(output=error_output("ActionDenied", APPROVED_AS_IT_IS))
            this = replace(this, call=replace(this.call, input=changed))
    if this.was_cut and not this.tool.reruns:
        return ToolResult(output=call_texts.INTERRUPTED, is_error=True)
    return this


async def _ask_agent(this: TurnCall) -> ToolDecision:
    context = ToolCallContext(
        request_id=this.turn.facts.request_id,
        call_id=this.call.call_id,
        tool_name=this.call.tool_name,
        input=this.call.input,
        attempt=this.context.attempt,
        step_number=this.turn.view.number,
        messages=this.turn.view.messages,
    )
    return await ask_hook(this.turn.agent, "before_tool_call", context) or Allow()


def _substituted(output: object) -> ToolResult:
    try:
        return ToolResult(output=to_json(output))
    except (TypeError, ValueError) as error:
        return ToolResult(output=str(error), is_error=True)
