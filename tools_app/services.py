"""The only writers of tool calls."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from tools_app.core.calls import CallStatus, ToolCall, ToolResult
from tools_app.models import ToolCallRecord


@transaction.atomic
def begin_call(call: ToolCall, *, turn_id: str, owner_id: int | None) -> int:
    """Write that a call runs; returns the attempt (1 the first time, more after a crash).

    Durability: safe to call again; a settled row is left as it is.
    """
    row, made = ToolCallRecord.objects.get_or_create(
        turn_id=turn_id,
        call_id=call.call_id,
        defaults={"owner_id": owner_id, "tool_name": call.tool_name, "input": call.input},
    )
    if made:
        return 1
    ToolCallRecord.objects.filter(pk=row.pk, status=CallStatus.RUNNING).update(attempt=F("attempt") + 1)
    return row.attempt + 1


def settle_call(call_id: str, *, turn_id: str, result: ToolResult) -> bool:
    """Write how a call ended; `False` if it had ended already (the first result wins)."""
    status = CallStatus.FAILED if result.is_error else CallStatus.SUCCEEDED
    changed = ToolCallRecord.objects.filter(turn_id=turn_id, call_id=call_id, status=CallStatus.RUNNING).update(
        status=status, output=result.output, duration_ms=result.duration_ms, settled_at=timezone.now()
    )
    return changed == 1
