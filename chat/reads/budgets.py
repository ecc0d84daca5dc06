"""The budgets that a person has set on conversations, and what each of them leaves. Reads only."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.db.models import Sum

from chat.instances.addresses import MAX_HOPS
from chat.models import AgentInstance
from sessions_app.models import Session

MOST_BUDGETS: Final = 100
"""Budgets that are looked at: those of the histories that changed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """A budget of one history. `cost`: with the sub-agents of its conversation, as the budget itself counts.

    `title`: of the conversation; `session_name`: of the history, where it has one. `left`: never below 0.
    """

    instance_id: str
    session_id: str
    title: str
    session_name: str
    agent: str
    cost: Decimal
    max_cost: Decimal
    left: Decimal


def budgets_of_person(user_id: Any) -> list[BudgetView]:
    """A person's budgets, the fullest first. Three queries at least, and one for each level of sub-agents."""
    limited = Session.objects.filter(owner_id=user_id, max_cost__isnull=False).order_by("-updated_at", "pk")
    sessions = list(limited.only("id", "scope", "name", "cost", "max_cost")[:MOST_BUDGETS])
    if not sessions:
        return []
    rows = AgentInstance.objects.filter(pk__in={session.scope for session in sessions}, owner_id=user_id)
    instances = {row.pk: row for row in rows.only("id", "title", "agent")}
    below = _cost_below(list(instances))
    views = [_view(session, instances[session.scope], below) for session in sessions if session.scope in instances]
    return sorted(views, key=lambda view: (-view.cost / view.max_cost if view.max_cost else Decimal(-1), view.title))


def _view(session: Session, instance: AgentInstance, below: dict[str, Decimal]) -> BudgetView:
    assert session.max_cost is not None
    cost = session.cost + below.get(instance.pk, Decimal(0))
    return BudgetView(
        instance_id=instance.pk,
        session_id=session.pk,
        title=instance.title,
        session_name=session.name,
        agent=instance.agent,
        cost=cost,
        max_cost=session.max_cost,
        left=max(session.max_cost - cost, Decimal(0)),
    )


def _cost_below(roots: list[str]) -> dict[str, Decimal]:
    """The cost of the sub-agents of each of these, at all levels."""
    parent_of: dict[str, str] = {}
    edge = roots
    for _ in range(MAX_HOPS):
        found = AgentInstance.everything.filter(parent_id__in=edge).values_list("pk", "parent_id")
        edge = [child for child, parent in found if parent_of.setdefault(child, str(parent)) == parent]
        if not edge:
            break
    if not parent_of:
        return {}
    sums = Session.objects.filter(scope__in=list(parent_of)).order_by().values_list("scope").annotate(cost=Sum("cost"))
    total: dict[str, Decimal] = {}
    for scope, cost in sums:
        at: str | None = parent_of[scope]
        while at is not None:
            total[at] = total.get(at, Decimal(0)) + cost
            at = parent_of.get(at)
    return total
