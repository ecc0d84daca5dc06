"""Questions about calls that wait in a conversation."""

from typing import Any

from chat.models import AgentInstance, Turn
from sessions_app.core.messages.shapes import Part
from sessions_app.messages.services import update_message
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.services import pause_call
from tools_app.core.questions import Question
from tools_app.core.tool import tool
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import ToolCallRecord


@tool(editable=("amount",))
def pay(order: str, amount: float) -> str:
    """Pay."""
    return f"{order} {amount}"


ARGUMENTS: JSONObject = {"order": "A-1", "amount": 5}
QUESTION = Question(
    title="Payment", sentence="Pay 5 for A-1?", may_edit=("amount",), input_schema=pay.input_schema
).to_json()


def ask(instance: AgentInstance, call_id: str, **row: Any) -> ToolCallRecord:
    """Put a question into the last answer of a conversation."""
    turn = Turn.objects.filter(instance=instance).order_by("-position")[0]
    part: Part = {"type": "tool-pay", "toolCallId": call_id, "state": "approval-requested", "input": ARGUMENTS}
    part["approval"] = {"id": f"apr-{call_id}"}
    update_message(turn.session_id, turn.assistant_id, lambda m: {**m, "parts": [*m["parts"], part]})
    pause = ToolPause(status=CallStatus.ASKED, approval_id=f"apr-{call_id}", question=row.pop("question", QUESTION))
    call = ToolCall(call_id=call_id, tool_name="pay", input=ARGUMENTS)
    made = pause_call(call, pause, turn_id=turn.pk, scope=instance.pk, owner_id=instance.owner_id)
    ToolCallRecord.objects.filter(pk=made.pk).update(**row)
    return made
