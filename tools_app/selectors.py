"""The only readers of tool calls."""

from collections.abc import Iterable

from tools_app.core.calls import CallStatus
from tools_app.models import ToolCallRecord


def call_durations(turn_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read how long the settled calls of some turns took: turn id to call id to milliseconds. One query."""
    found: dict[str, dict[str, int]] = {}
    rows = ToolCallRecord.objects.filter(turn_id__in=set(turn_ids), settled_at__isnull=False)
    for turn_id, call_id, duration_ms in rows.values_list("turn_id", "call_id", "duration_ms"):
        found.setdefault(turn_id, {})[call_id] = duration_ms
    return found


def unfinished_calls(turn_ids: Iterable[str]) -> set[str]:
    """Read which calls of some turns the server has begun and not settled, by call id. One query."""
    rows = ToolCallRecord.objects.filter(turn_id__in=set(turn_ids), status=CallStatus.RUNNING)
    return set(rows.values_list("call_id", flat=True))
