"""The present activity of a running turn, from rows that are read by the statement which finds the turn.

The stream of the turn says the same in more detail (`data-think-status`); this is for clients that do not follow it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from chat.models import Turn
from fibers.core.states import FiberStatus
from fibers.models import FiberStep
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

Kind = Literal["model", "tool", "retry", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """An activity. `name`: the tool's, or what is waited for; nothing for a model, whose name is in the stream.

    `kind`: `retry` while the model is to be asked again, `waiting` while the turn is parked. `since`: its beginning.
    """

    kind: Kind
    name: str | None
    since: datetime | None


def with_activity(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Add what `activity_of` reads. Costs no statement of its own."""
    # Approved calls are rows of the turn whose answer asked for them.
    mine = Q(turn_id=OuterRef("pk")) | Q(turn_id=OuterRef("parent_id"))
    calls = ToolCallRecord.objects.filter(mine, status=CallStatus.RUNNING).order_by("pk")
    steps = FiberStep.objects.filter(fiber=OuterRef("fiber_id")).order_by("-pk")
    return turns.annotate(
        tool_name=Subquery(calls.values("tool_name")[:1]),
        tool_turn_id=Subquery(calls.values("turn_id")[:1]),
        tool_since=Subquery(calls.values("created_at")[:1]),
        settled_at=Subquery(steps.values("created_at")[:1]),
    )


def activity_of(turn: Turn) -> Activity | None:
    """The activity of a turn of `with_activity`; nothing before it has begun. Needs its fiber."""
    begun = turn.started_at
    if begun is None:
        return None
    if turn.fiber.status == FiberStatus.PARKED and turn.fiber.waits:
        wait = turn.fiber.waits[0]
        return Activity(kind="waiting", name=wait.get("label") or wait.get("kind"), since=wait.get("since"))
    if pending_retry(turn.retry) is not None:
        return Activity(kind="retry", name=None, since=turn.retry.get("since"))
    tool_name: str | None = getattr(turn, "tool_name", None)
    if tool_name is not None:
        is_own = getattr(turn, "tool_turn_id", None) == turn.pk
        return Activity(kind="tool", name=tool_name, since=getattr(turn, "tool_since", None) if is_own else begun)
    settled_at: datetime | None = getattr(turn, "settled_at", None)
    return Activity(kind="model", name=None, since=begun if settled_at is None else max(begun, settled_at))


def pending_retry(noted: Any) -> JSONObject | None:
    """The attempt that a running turn waits to make, of what it has noted; nothing once its time has come."""
    retry_at = None if noted is None else datetime.fromisoformat(noted["retryAt"])
    if retry_at is None or retry_at <= timezone.now():
        return None
    return {"code": noted["code"], "attempt": noted["attempt"], "attempts": noted["attempts"], "retry_at": retry_at}
