"""The only readers of tool calls."""

from collections.abc import Iterable

from django.db.models import QuerySet
from django.utils import timezone

from tools_app.core.calls import OPEN, CallStatus
from tools_app.models import ToolCallRecord


def call_durations(turn_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read how long the settled calls of some turns took: turn id to call id to milliseconds. One query."""
    found: dict[str, dict[str, int]] = {}
    rows = ToolCallRecord.objects.filter(turn_id__in=set(turn_ids), settled_at__isnull=False)
    for turn_id, call_id, duration_ms in rows.values_list("turn_id", "call_id", "duration_ms"):
        found.setdefault(turn_id, {})[call_id] = duration_ms
    return found


def open_calls(scope: str) -> QuerySet[ToolCallRecord]:
    """Calls of a scope that wait for an answer from outside, or were approved and have not run; oldest first."""
    return ToolCallRecord.objects.filter(scope=scope, status__in=OPEN).order_by("pk")


def find_call(scope: str, call_id: str) -> ToolCallRecord | None:
    """Read the newest call of a scope under this id; settled ones too. Weak models use ids twice."""
    return ToolCallRecord.objects.filter(scope=scope, call_id=call_id).order_by("-pk").first()


def calls_of(turn_id: str) -> QuerySet[ToolCallRecord]:
    """Calls of one turn that were handed out, whatever became of them, oldest first."""
    return ToolCallRecord.objects.filter(turn_id=turn_id).exclude(scope="").order_by("pk")


def approved_calls(turn_id: str) -> list[ToolCallRecord]:
    """Calls of a turn that a person approved and that have no result, begun ones included; oldest first."""
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, status__in=(CallStatus.APPROVED, CallStatus.RUNNING))
    return list(rows.exclude(approval_id="").order_by("pk"))


def expired_calls(limit: int, *, row_id: int | None = None) -> list[ToolCallRecord]:
    """Questions whose time is over, oldest first; with `row_id` that one, if it is among them."""
    asked = ToolCallRecord.objects.filter(status=CallStatus.ASKED, expires_at__lte=timezone.now())
    if row_id is not None:
        asked = asked.filter(pk=row_id)
    return list(asked.order_by("expires_at")[:limit])
