"""The only readers of tool calls."""

from collections.abc import Iterable
from typing import Any, Final

from django.db.models import QuerySet
from django.db.models.functions import Now

from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.core.tool_calls import OPEN, CallStatus
from tools_app.models import ApprovalEvent, ToolCallRecord


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


def lasting_calls(scope: str) -> frozenset[str]:
    """Ids of the calls of a scope whose question lasts and that have no result: not decided, or approved and not run.

    Begun ones included.
    """
    rows = ToolCallRecord.objects.filter(scope=scope, lasting=True, status__in=(*OPEN, CallStatus.RUNNING))
    return frozenset(rows.values_list("call_id", flat=True))


_OPEN_STATUSES: Final = ", ".join(f"'{status.value}'" for status in sorted(OPEN))
OPEN_CALLS: Final = (
    "EXISTS (SELECT 1 FROM think_tools_toolcallrecord c"  # noqa: S608 - constants
    f" WHERE c.scope = :scope: AND c.status IN ({_OPEN_STATUSES}))"
)
"""Whether `open_calls` has any, as part of another statement; `:scope:` stands for an expression of it."""


ASKED_OR_WAITING: Final = (
    f"c.scope = :scope: AND c.status IN ({_OPEN_STATUSES}) AND c.status <> '{CallStatus.APPROVED.value}'"
    " AND (c.expires_at IS NULL OR c.expires_at > %s)"
)
"""The condition of a call `c` that can be answered at the instant that is its parameter; `:scope:` as above."""


def find_call(scope: str, call_id: str) -> ToolCallRecord | None:
    """Read the newest call of a scope under this id; settled ones too. Weak models use ids twice."""
    return ToolCallRecord.objects.filter(scope=scope, call_id=call_id).order_by("-pk").first()


def has_begun(turn_id: str, call_id: str) -> bool:
    """Whether a call of this turn runs, or has run."""
    begun = (CallStatus.RUNNING, CallStatus.SUCCEEDED, CallStatus.FAILED)
    return ToolCallRecord.objects.filter(turn_id=turn_id, call_id=call_id, status__in=begun).exists()


def newest_output_of(turn_id: str, tool_name: str) -> JSONValue:
    """The output of the last call of a tool that succeeded in a turn; nothing without."""
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, tool_name=tool_name, status=CallStatus.SUCCEEDED)
    output: JSONValue = rows.order_by("-settled_at", "-pk").values_list("output", flat=True).first()
    return output


def scopes_with_questions(owner_id: int | None, *, limit: int = 200) -> list[str]:
    """The conversations of a user that have open questions, at most so many. One query; none without a user."""
    if owner_id is None:
        return []
    rows = ToolCallRecord.objects.filter(owner_id=owner_id, status=CallStatus.ASKED).exclude(scope="")
    return list(rows.order_by("scope").values_list("scope", flat=True).distinct()[:limit])


def find_inner_call(turn_id: str, call_id: str) -> ToolCallRecord | None:
    """Read a call that a call of this turn made and a person was asked about, whatever became of it."""
    return ToolCallRecord.objects.filter(turn_id=turn_id, call_id=call_id).exclude(wait_key="").first()


def calls_of(turn_id: str) -> QuerySet[ToolCallRecord]:
    """Calls of one turn's model that were handed out, whatever became of them, oldest first."""
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, wait_key="").exclude(scope="")
    return rows.exclude(status=CallStatus.EARLY).order_by("pk")


def approval_events(scope: str, call_id: str) -> list[ApprovalEvent]:
    """Audit events of a call's approval in a scope, oldest first."""
    return list(ApprovalEvent.objects.filter(call__scope=scope, call__call_id=call_id).order_by("pk"))


def approved_calls(turn_id: str) -> list[ToolCallRecord]:
    """Calls of a turn's model that a person approved and that have no result, begun ones included; oldest first."""
    rows = ToolCallRecord.objects.filter(
        turn_id=turn_id, wait_key="", status__in=(CallStatus.APPROVED, CallStatus.RUNNING)
    )
    return list(rows.exclude(approval_id="").order_by("pk"))


def questions_to(owner_id: Any) -> QuerySet[ToolCallRecord]:
    """Questions that a user can still decide, in whatever scope; newest first."""
    rows = ToolCallRecord.objects.filter(owner_id=owner_id, status=CallStatus.ASKED)
    return rows.exclude(expires_at__lte=Now()).order_by("-pk")


def questions_within(scopes: Any) -> QuerySet[ToolCallRecord]:
    """Questions of these scopes, which may be a subquery, that can still be decided; newest first."""
    rows = ToolCallRecord.objects.filter(scope__in=scopes, status=CallStatus.ASKED)
    return rows.exclude(expires_at__lte=Now()).order_by("-pk")


def questions_in(scope: str) -> QuerySet[ToolCallRecord]:
    """Questions of a scope that can still be decided, oldest first."""
    rows = ToolCallRecord.objects.filter(scope=scope, status=CallStatus.ASKED)
    return rows.exclude(expires_at__lte=Now()).order_by("pk")


def find_question(scope: str, approval_id: str) -> ToolCallRecord | None:
    """Read the call of a scope that was asked about under this id, whatever became of it."""
    rows = ToolCallRecord.objects.filter(scope=scope, approval_id=approval_id) if approval_id else None
    return None if rows is None else rows.first()


def expired_call(row_id: int) -> ToolCallRecord | None:
    """Read a question whose time is over by the database's clock; nothing when it is not, or was answered."""
    rows = ToolCallRecord.objects.filter(pk=row_id, status=CallStatus.ASKED, expires_at__lte=Now())
    return rows.first()
