"""What is done and looked up beside the product. Runs within it, called by a `Hand`."""

from django.core.cache import cache

from chat.instances.rows import key_of
from chat.models import Turn
from chat.turns.state.parking import answer_wait
from tools_app.models import ToolCallRecord


def standing(room: str) -> dict[str, object]:
    """How the newest turn of a conversation stands, and what looks like a crash."""
    turn = Turn.objects.select_related("fiber").filter(instance__name=room).order_by("-id").first()
    if turn is None:
        return {"status": ""}
    fiber = turn.fiber
    calls = ToolCallRecord.objects.filter(turn_id=turn.pk).count()
    received = cache.get(f"recovered.{room}")
    return {
        "status": fiber.status,
        "recoveries": fiber.recoveries,
        "calls": calls,
        "resumed": cache.get(f"resumed.{turn.pk}", 0),
        "recovery_heard": received,
    }


def answer(room: str, value: str) -> bool:
    """Answer what its turn waits for."""
    turn = Turn.objects.select_related("instance").filter(instance__name=room).order_by("-id")[0]
    call = ToolCallRecord.objects.get(turn_id=turn.pk)
    return answer_wait(key_of(turn.instance), call.call_id, value, wait="window")
