"""The run of a call: the executor, with what the tool can attach to the reply, and the ledger for an action."""

from collections.abc import AsyncIterator
from dataclasses import replace

from chat.files.reply_parts import CallReplies
from chat.turns.execution.tool_call.call import TurnCall
from tools_app.actions.run_action import RunAction
from tools_app.calls.run import execute
from tools_app.core.tool_calls import ToolProgress, ToolResult


async def perform(this: TurnCall) -> AsyncIterator[ToolProgress | ToolResult]:
    """Run the tool. Any number of reports, then one result."""
    key, fiber, tool = this.turn.facts.key, this.turn.fiber, this.tool
    replies = CallReplies(this.turn.reply_room, key, this.call.call_id)
    act = RunAction(
        scope=key.instance_id,
        owner_id=key.owner_id,
        turn_id=this.turn_id,
        authorize=this.gate().refusal,
        replies=replies,
    )
    fiber.passed(f"tool:{tool.name}:{this.call.call_id}:begins")
    repeats_outages = tool.reruns and fiber.retries < fiber.max_retries
    given = replace(this.context, attach=replies.attach, act=act, repeats_outages=repeats_outages)
    async for item in execute(tool, this.call, given):
        if isinstance(item, ToolProgress):
            yield item
            continue
        fiber.passed(f"tool:{tool.name}:{this.call.call_id}:returned")
        if item.is_error:
            replies.drop()
            yield item
        else:
            yield replace(item, reply=tuple(await replies.resolve()))
