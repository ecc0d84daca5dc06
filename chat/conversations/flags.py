"""Flags of the list of conversations, beside a title: running, unread, waiting for a person, failed.

All of it is read in the statement that reads the rows, along indexes: a few probes a row, whatever the history.
"""

from typing import Any, Final

from django.db.models import Case, CharField, Exists, F, JSONField, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Concat, JSONObject

from chat.models import AgentInstance, Membership, Revert, Turn
from chat.reads.activity import pending_retry
from chat.turns.execution.begin import LEAF
from chat.turns.state.status import TurnStatus, fiber_statuses
from thinkproject.kernel.jsonvalue import JSONValue, load
from thinkproject.kernel.statements import instant
from tools_app.calls.selectors import ASKED_OR_WAITING
from tools_app.models import PermissionRule
from tools_app.models.guard import Guard
from tools_app.permissions.rows import PLANS

RECENT_TURNS: Final = 50
LIVE: Final = ("pending", "running")

_WAITING: Final = f"""
    (SELECT COUNT(*) FROM think_tools_toolcallrecord c
        JOIN think_chat_turn t ON t.id = c.turn_id
        JOIN think_sessions_session s ON s.id = t.session_id
        LEFT JOIN think_sessions_message m ON m.id = s.active_leaf_id
    WHERE {ASKED_OR_WAITING.replace(":scope:", "think_chat_agentinstance.id")}
        AND t.session_id = think_chat_agentinstance.session_id
        AND (c.lasting OR t.finished_at IS NULL OR t.assistant_id = m.message_id))
"""  # noqa: S608 - constants


def with_flags(rows: QuerySet[AgentInstance]) -> QuerySet[AgentInstance]:
    """Add what `is_running`, `waiting_count` and the others here read. Costs no statement of its own."""
    # Only the newest turns can run or be unread, found along the index of positions: whatever the history, a few
    # probes a row. An EXISTS here lets PostgreSQL start from all fibers instead.
    turns = Turn.objects.filter(instance=OuterRef("pk"), position__gt=OuterRef("turn_count") - RECENT_TURNS)
    newest = turns.order_by("-position")
    origin = AgentInstance.objects.filter(pk=OuterRef("session__forked_from__session__scope"), owner=OuterRef("owner"))
    here = newest.filter(session=OuterRef("session"))
    return rows.annotate(
        origin_id=Subquery(origin.values("pk")[:1]),
        origin_title=Subquery(origin.values("title")[:1]),
        origin_message_id=F("session__forked_from__message_id"),
        live_status=Subquery(newest.filter(finished_at=None, fiber__status__in=LIVE).values("fiber__status")[:1]),
        noted_retry=Subquery(newest.filter(finished_at=None, fiber__status="running").values("retry")[:1]),
        last_finished_at=Subquery(newest.filter(finished_at__isnull=False).values("finished_at")[:1]),
        last_failure=Subquery(here.values(found=_failure())[:1]),
        leaf_id=F("session__active_leaf__message_id"),
        guard=Subquery(Guard.objects.filter(pk=OuterRef("session_id")).values(found=_standing())[:1]),
        is_shared=Exists(Membership.objects.filter(instance=OuterRef("pk"), revoked_at=None)),
        plans=Exists(PermissionRule.objects.filter(PLANS, scope=OuterRef("pk"))),
        undone=_undone(),
        waiting=RawSQL(_WAITING, (instant(),)),  # noqa: S611 - constants
    )


def guard_of(row: AgentInstance) -> str:
    """A text that differs after every change of the current session's guard; empty without text of strangers."""
    return str(getattr(row, "guard", None) or "")


def _standing() -> Any:
    seen, through = (Cast(name, CharField()) for name in ("seen", "decided_through"))
    return Concat(seen, Value(" "), "decision", Value(" "), through, output_field=CharField())


def _undone() -> Any:
    """The newest undo that stands and that no turn has followed: `chat.runtime.undo.redoable`, in this statement."""
    stands = Revert.objects.filter(instance=OuterRef("pk"), redoes=None, redone_by=None)
    last_turn = Turn.objects.filter(instance=OuterRef("instance")).order_by("-position").values("accepted_at")[:1]
    row = JSONObject(id="id", session="session_id", files="file_count", messages="includes_messages")
    standing = stands.filter(created_at__gte=Subquery(last_turn)).order_by("-created_at", "-pk")
    return Subquery(standing.values(found=row)[:1], output_field=JSONField())


def _failure() -> Any:
    """The place of a failed turn in its conversation; nothing of a turn that did not fail."""
    place = JSONObject(answer=F("assistant_id"), options=F("options"))
    failed = fiber_statuses(TurnStatus.ERROR)
    return Case(When(fiber__status__in=failed, then=place), default=Value(None), output_field=JSONField())


def plans(row: AgentInstance) -> bool:
    """Whether the conversation is in plan mode."""
    return bool(getattr(row, "plans", False))


def undone(row: AgentInstance) -> dict[str, Any] | None:
    """The undo that a redo would take back, without its history: `id`, `file_count`, `includes_messages`."""
    found = getattr(row, "undone", None)
    found = load(found) if isinstance(found, str) else found
    if found is None or found["session"] != row.session_id:
        return None
    return {"id": found["id"], "file_count": found["files"], "includes_messages": bool(found["messages"])}


def is_running(row: AgentInstance) -> bool:
    """Whether a turn runs or waits for its place."""
    return getattr(row, "live_status", None) is not None


def retry_of(row: AgentInstance) -> JSONValue:
    """The next attempt of a running turn whose model has failed: `code`, `attempt`, `attempts`, `retry_at`."""
    return pending_retry(getattr(row, "noted_retry", None))


def waiting_count(row: AgentInstance) -> int:
    """Number of calls at the end of the shown path a person or a client can answer."""
    return int(getattr(row, "waiting", 0))


def has_failed(row: AgentInstance) -> bool:
    """Whether the newest turn of the current session failed, and the shown path ends with it."""
    failure: dict[str, Any] | None = getattr(row, "last_failure", None)
    if failure is None:
        return False
    options = failure["options"]
    options = load(options) if isinstance(options, str) else options
    ends = [failure["answer"], options[LEAF]] if LEAF in options else None  # not begun: it is below what is shown
    return ends is None or getattr(row, "leaf_id", None) in ends
