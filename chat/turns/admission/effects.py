"""Effects of actions that people look after: results whose call never got them."""

from django.db import transaction

from chat.instances.rows import hold_instance
from chat.models import AgentInstance, Turn
from chat.turns.admission.tool_answers import show_answers
from tools_app.calls.services import settle_call
from tools_app.core.action_rules import ActionStatus
from tools_app.core.tool_calls import CallStatus, ToolResult
from tools_app.models import ActionRecord, ToolCallRecord


@transaction.atomic
def replay_effect(record_id: int) -> bool:
    """Give the result of a settled effect to its call, where the turn that ran the call has ended without it.

    The stored message gets it too, and the open pages learn of it. `False` where the effect is not settled, or its call
    has a result or is gone: the first result of a call stays.
    """
    record = ActionRecord.objects.filter(pk=record_id, status=ActionStatus.SETTLED).first()
    instance = None if record is None else AgentInstance.objects.filter(pk=record.scope).first()
    if record is None or instance is None:
        return False
    hold_instance(instance)
    row = ToolCallRecord.objects.filter(
        turn_id=record.turn_id, call_id=record.call_id, status=CallStatus.RUNNING
    ).first()
    turn = Turn.objects.filter(pk=record.turn_id, finished_at__isnull=False).first()
    is_running = Turn.objects.filter(instance=instance, started_at__isnull=False, finished_at=None).exists()
    if row is None or turn is None or is_running:
        return False
    if not settle_call(row.call_id, turn_id=turn.pk, result=ToolResult(output=record.output)):
        return False
    show_answers(instance, turn, [row])
    return True
