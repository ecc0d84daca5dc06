"""The result of a call as it is stored: its output within its limit, its files and what was cut kept beside it."""

from dataclasses import replace

from chat.agent.base import InstanceKey
from chat.files.tool_outputs import CallPlace, keep_files, keep_whole, seen_files
from chat.turns.execution.tool_call.call import TurnCall
from thinkproject.kernel.aio import db
from tools_app.core.output_limits import cut_output
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult


async def keep(this: TurnCall, result: ToolResult) -> ToolResult:
    """Store what does not fit into the message, and give what does."""
    cut = cut_output(result.output, this.turn.limit_of(this.call.tool_name))
    if cut is None and not result.media:
        return result
    place = place_of(this.turn.facts.key, this.turn_id, this.call)
    details = dict(result.details)
    if cut is not None:
        details["whole"] = await db(keep_whole, place, result.output, cut)
    if result.media:
        entries = await db(keep_files, place, result.media)
        details["attachments"] = [*details.get("attachments", ()), *entries]
        this.turn.prompt.add_files(seen_files(entries, result.media))
    return replace(result, output=result.output if cut is None else cut.output, details=details, media=())


def shown(this: TurnCall, progress: ToolProgress) -> ToolProgress:
    """A report with an output as long as the result's may be."""
    cut = cut_output(progress.output, this.turn.limit_of(this.call.tool_name))
    return progress if cut is None else replace(progress, output=cut.output)


def place_of(key: InstanceKey, turn_id: str, call: ToolCall) -> CallPlace:
    """The place of files that a call gives."""
    return CallPlace(owner_id=key.owner_id, instance_id=key.instance_id, turn_id=turn_id, call_id=call.call_id)
