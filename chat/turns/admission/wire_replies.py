"""What the frames of a client say about calls, as the services take it."""

from chat.core.wire import frames
from chat.turns.admission.tool_answers import Reply
from thinkproject.kernel.jsonvalue import JSONObject


def reply_of(frame: frames.ToolResult | frames.ToolApproval) -> Reply:
    """The answer that a frame carries. A failure without words gets the usual ones."""
    if isinstance(frame, frames.ToolApproval):
        return Reply(call_id=frame.tool_call_id, is_approved=frame.approved, continues=frame.auto_continue)
    has_failed = frame.state == "output-error"
    return Reply(
        call_id=frame.tool_call_id,
        output=None if has_failed else frame.output,
        error_text=(frame.error_text or "") if has_failed else None,
        continues=frame.auto_continue,
    )


def tools_of(frame: frames.ChatRequest | frames.ToolResult | frames.ToolApproval) -> list[JSONObject] | None:
    """The client's tools that a frame brings; `None` when it does not speak of them."""
    tools = None if isinstance(frame, frames.ToolApproval) else frame.client_tools
    return None if tools is None else [tool.model_dump() for tool in tools]
