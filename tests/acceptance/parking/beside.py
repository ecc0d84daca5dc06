"""What is done and looked up beside the product. Runs within it, called by a `Hand`."""

from asgiref.sync import async_to_sync
from django.core.cache import cache

from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.models.runs import AgentRun
from chat.turns.state.parking import answer_wait
from tools_app.models import ActionRecord, ToolCallRecord


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


def approve(room: str) -> list[bool]:
    """Approve everything that waits in a conversation, twice each, as a page of one's own would."""
    handle = AgentHandle(key_of(AgentInstance.objects.get(name=room)))

    async def decide() -> list[bool]:
        ids = [pending.id for pending in await handle.pending_approvals()]
        return [await handle.approve_execution(each) for each in [*ids, *ids]]

    return async_to_sync(decide)()


def effects(room: str) -> list[list[object]]:
    """The ledger of a conversation."""
    rows = ActionRecord.objects.filter(scope__in=AgentInstance.objects.filter(name=room).values("pk"))
    return [[row.action, row.status, row.output] for row in rows.order_by("pk")]


def said(room: str) -> str:
    """The outputs of all calls of a conversation, and the text of its last answer."""
    instance = AgentInstance.objects.get(name=room)
    calls = ToolCallRecord.objects.filter(turn_id__in=Turn.objects.filter(instance=instance).values("pk"))
    return "\n".join(str(call.output) for call in calls.order_by("pk"))


def outcomes(room: str) -> list[object]:
    """How the runs of a conversation have ended; nothing for one that is under way."""
    return list(AgentRun.objects.filter(parent__name=room).order_by("pk").values_list("outcome", flat=True))
