"""Runs of agents for another agent, as they are shown to the parent's clients, in the API and to the admin. Reads only.

A run is of a conversation of its parent: one that belongs to a turn which was cleared away, or to another session, is
not shown. A run is shown with the turns of its child: the one that it began with, and those that follow it by
themselves once a question of it was answered.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.db.models import (
    Count,
    DecimalField,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce

from chat.agent.base import InstanceKey
from chat.instances.addresses import MAX_HOPS
from chat.instances.rows import lookup_of
from chat.models import AgentInstance, AgentRun, Turn
from fibers.core.states import TERMINAL, FiberStatus
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

STARTING: Final = "starting"
RUNNING: Final = "running"
WAITING: Final = "waiting"
MAX_TREE: Final = 200
SHOWN_RUNS: Final = 20
"""How many runs a tree shows."""
UNKNOWN: Final = "error"
"""Status of a run whose outcome names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run. `outcome`: none while it is under way. `status`: the outcome's, or `starting`, `running` or `waiting`.

    `order`: its place among the runs of its call. `turn_id`: the first turn of the child, none before it was accepted.
    `question_count`: questions that the child has asked and that can be decided now.
    """

    id: str
    run_id: str
    agent: str
    call_id: str
    order: int
    display: JSONObject | None
    input_preview: JSONValue
    is_detached: bool
    parent_id: str
    child_id: str | None
    child_name: str | None
    parent_turn_id: str | None
    turn_id: str | None
    turn_is_final: bool
    status: str
    progress: JSONObject | None
    progress_at: datetime | None
    outcome: JSONObject | None
    created_at: datetime
    finished_at: datetime | None
    turn_count: int = 0
    question_count: int = 0
    cost: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTurn:
    """A turn of a run's child, and whether it has ended."""

    turn_id: str
    is_final: bool


def kept_runs() -> QuerySet[AgentRun]:
    """The runs that are still of their parent's conversation."""
    is_kept = Q(parent_turn=None) | Q(
        parent_turn__generation=F("parent__generation"), parent_turn__session=F("parent__session")
    )
    return with_status(AgentRun.objects.filter(is_kept))


def with_status(runs: QuerySet[AgentRun]) -> QuerySet[AgentRun]:
    """Add the state of the child's turn, which `run_view` reads. Costs no statement of its own."""
    return runs.annotate(fiber_status=F("turn__fiber__status"), child_name=F("child__name"))


def with_counts(runs: QuerySet[AgentRun]) -> QuerySet[AgentRun]:
    """Add the child's turns, their cost and its open questions. Costs no statement of its own."""
    turns = Turn.objects.filter(instance=OuterRef("child_id")).order_by().values("instance")
    asked = ToolCallRecord.objects.filter(scope=OuterRef("child_id"), status=CallStatus.ASKED).order_by()
    return runs.annotate(
        turn_count=Coalesce(Subquery(turns.annotate(n=Count("pk")).values("n")), 0),
        cost=Coalesce(Subquery(turns.annotate(n=Sum("cost")).values("n")), Value(Decimal(0)), output_field=_COST),
        question_count=Coalesce(Subquery(asked.values("scope").annotate(n=Count("pk")).values("n")), 0),
    )


_COST = DecimalField(max_digits=20, decimal_places=10)


def newest_runs(key: InstanceKey) -> list[RunView]:
    """The newest runs of an address that its clients are shown, oldest first; `SHOWN_RUNS` at most. One query."""
    newest = _runs_of(key).order_by("-created_at", "-pk")[:SHOWN_RUNS]
    return [run_view(run) for run in reversed(list(newest))]


def find_run(key: InstanceKey, pk: str) -> RunView | None:
    """One run of an address, by the key of its row; none that was cleared away."""
    run = _runs_of(key).filter(pk=pk).first()
    return None if run is None else run_view(run)


def read_run(pk: str) -> RunView | None:
    """One run by the key of its row, also one that was cleared away."""
    run = with_status(AgentRun.objects.filter(pk=pk)).first()
    return None if run is None else run_view(run)


def ends_now(pk: str, turn_id: str) -> bool:
    """Whether nothing more of a turn is shown to the parent: it has ended, or the run has, or is gone. One query."""
    goes_on = Turn.objects.filter(pk=turn_id).exclude(fiber__status__in=TERMINAL)
    return not AgentRun.objects.filter(Exists(goes_on), pk=pk, outcome=None).exists()


def next_turn(turn_id: str) -> RunTurn | None:
    """The turn that goes on from an ended one by itself, once its questions were answered; none if none does."""
    row = Turn.objects.filter(parent=turn_id).order_by("position").values_list("pk", "fiber__status").first()
    return None if row is None else RunTurn(turn_id=row[0], is_final=row[1] in TERMINAL)


def run_count(instance: Any) -> Subquery:
    """The number of runs of an instance, as a part of a query; NULL for none. `instance`: an `OuterRef` of its key."""
    runs = AgentRun.objects.filter(parent=instance).order_by().values("parent")
    return Subquery(runs.annotate(n=Count("pk")).values("n"))


def count_runs(key: InstanceKey) -> int:
    """The number of all runs of an address."""
    counts = AgentInstance.objects.filter(**lookup_of(key)).values_list(run_count(OuterRef("pk")), flat=True)
    return counts.first() or 0


def run_view(run: AgentRun) -> RunView:
    """A run of `kept_runs` or `with_status`, as it is shown; with counts if `with_counts` has added them."""
    facts: Any = run  # what the query has added has no declared type
    outcome, fiber_status = run.outcome, facts.fiber_status
    counts = {name: getattr(run, name) for name in ("turn_count", "question_count", "cost") if hasattr(run, name)}
    return RunView(
        id=run.pk,
        run_id=run.run_id,
        agent=run.agent,
        call_id=run.call_id,
        order=run.display_order,
        display=run.display,
        input_preview=run.input_preview,
        is_detached=run.is_detached,
        parent_id=run.parent_id,
        child_id=run.child_id,
        child_name=facts.child_name,
        parent_turn_id=run.parent_turn_id,
        turn_id=run.turn_id,
        turn_is_final=run.turn_id is not None and fiber_status in TERMINAL,
        status=_status(fiber_status, counts.get("question_count", 0)) if outcome is None else _ended(outcome),
        progress=run.progress,
        progress_at=run.progress_at,
        outcome=outcome,
        created_at=run.created_at,
        finished_at=run.finished_at,
        **counts,
    )


def _status(fiber_status: str | None, questions: int) -> str:
    if fiber_status is None or fiber_status == FiberStatus.PENDING:
        return STARTING
    return WAITING if questions or fiber_status == FiberStatus.PARKED else RUNNING


def _ended(outcome: JSONObject) -> str:
    status = outcome.get("status")
    return status if isinstance(status, str) else UNKNOWN


def _runs_of(key: InstanceKey) -> QuerySet[AgentRun]:
    return kept_runs().filter(**lookup_of(key, "parent__"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of runs, newest first. `next_cursor`: nothing at the end."""

    items: list[RunView]
    next_cursor: str | None


def run_page(instance_id: str, *, cursor: str = "", limit: int = 50) -> RunPage:
    """Runs of a conversation, newest first, with counts. Two queries at most.

    `cursor`: the former page's `next_cursor`; one of a run that is gone gives an empty page.
    """
    rows = with_counts(kept_runs().filter(parent_id=instance_id)).order_by("-created_at", "-pk")
    if cursor:
        last = AgentRun.objects.filter(pk=cursor, parent_id=instance_id).values_list("created_at", flat=True).first()
        if last is None:
            return RunPage(items=[], next_cursor=None)
        rows = rows.filter(Q(created_at__lt=last) | Q(created_at=last, pk__lt=cursor))
    found = [run_view(run) for run in rows[: limit + 1]]
    page = found[:limit]
    return RunPage(items=page, next_cursor=page[-1].id if len(found) > limit else None)


def run_with_counts(pk: str) -> RunView | None:
    """One run with counts. One query."""
    run = with_counts(with_status(AgentRun.objects.filter(pk=pk))).first()
    return None if run is None else run_view(run)


def run_tree(instance_id: str) -> list[RunView]:
    """The newest runs of a conversation and those below them, with counts; one query for each level.

    Shape: each level newest first; `parent_id` of a run below is the `child_id` of one above it. At most
    `MAX_TREE` runs, and `MAX_HOPS` levels.
    """
    found: list[RunView] = []
    above, seen = [instance_id], set[str]()
    for _level in range(MAX_HOPS):
        left = MAX_TREE - len(found)
        if not above or not left:
            break
        seen.update(above)
        rows = with_counts(kept_runs().filter(parent_id__in=above)).order_by("-created_at", "-pk")
        level = [run_view(run) for run in rows[:left]]
        found += level
        above = [child for child in {run.child_id for run in level} if child is not None and child not in seen]
    return found
