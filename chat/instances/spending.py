"""Costs of conversations, including their sub-agents. Reads only."""

from dataclasses import dataclass
from decimal import Decimal

from chat.instances.rows import descendants
from chat.models import AgentInstance
from sessions_app.messages.usage import UsageSum, usage_of
from sessions_app.models import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpending:
    """The cost of a session including its conversation's sub-agents, and its limit."""

    cost: Decimal
    max_cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Usage of a conversation: its own, its sub-agents', and both."""

    own: UsageSum
    sub_agents: UsageSum
    total: UsageSum


def spending(instance: AgentInstance) -> Spending:
    """Usage of a conversation and its sub-agents. Active turns are not included."""
    below = descendants(instance.pk)
    own = usage_of([instance.pk])
    children = usage_of(below) if below else UsageSum()
    total = UsageSum(
        input_tokens=own.input_tokens + children.input_tokens,
        output_tokens=own.output_tokens + children.output_tokens,
        reasoning_tokens=own.reasoning_tokens + children.reasoning_tokens,
        cached_tokens=own.cached_tokens + children.cached_tokens,
        cost=own.cost + children.cost,
        session_count=own.session_count + children.session_count,
    )
    return Spending(own=own, sub_agents=children, total=total)


def session_spending(instance: AgentInstance, session_id: str) -> SessionSpending:
    """The cost and limit of one session. One query without a limit.

    Sub-agents belong to the conversation, so what they cost counts for each of its sessions.
    """
    session = Session.objects.only("cost", "max_cost").filter(pk=session_id).first()
    if session is None or session.max_cost is None:
        return SessionSpending(cost=Decimal(0) if session is None else session.cost, max_cost=None)
    below = descendants(instance.pk)
    children = usage_of(below).cost if below else Decimal(0)
    return SessionSpending(cost=session.cost + children, max_cost=session.max_cost)
