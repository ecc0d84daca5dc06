"""A session's usage: tokens and cost, added in the transaction of the work.

Not part of the conversation: nothing is locked for longer than the statement, and the change sequence stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Sum
from django.db.models.functions import Coalesce

from sessions_app.errors import BudgetInvalid, SessionNotFound
from sessions_app.models import Message, Session
from thinkproject.kernel.phrases import Phrase

_MOST = Decimal(10) ** 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage:
    """Token counts of the providers, and their cost. Input includes cached tokens, output includes reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum(SessionUsage):
    """The usage of several sessions."""

    session_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessages:
    """The number and the size of a user's messages."""

    count: int
    byte_count: int


def stored_messages(owner_id: Any) -> StoredMessages:
    """Count the messages in all sessions of an owner. Reads every one of them."""
    found = Message.objects.filter(session__owner_id=owner_id).aggregate(count=Count("pk"), total=Sum("byte_size"))
    return StoredMessages(count=found["count"], byte_count=found["total"] or 0)


def add_usage(session_id: str, usage: SessionUsage, *, model_name: str = "") -> bool:
    """Add to a session's usage; false if the session is gone. Values may be negative, for corrections."""
    changes = {
        "input_tokens": F("input_tokens") + usage.input_tokens,
        "output_tokens": F("output_tokens") + usage.output_tokens,
        "reasoning_tokens": F("reasoning_tokens") + usage.reasoning_tokens,
        "cached_tokens": F("cached_tokens") + usage.cached_tokens,
        "cost": F("cost") + usage.cost,
    }
    named = {"model_name": model_name[:200]} if model_name else {}
    return Session.objects.filter(pk=session_id).update(**changes, **named) == 1


def usage_of(scopes: Iterable[str]) -> UsageSum:
    """The usage of all sessions of these scopes, in one query."""
    names = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cost")
    sums = {f"{name}_sum": Coalesce(Sum(name), 0 if name != "cost" else Decimal(0)) for name in names}
    found = Session.objects.filter(scope__in=list(scopes)).aggregate(**sums, count=Count("pk"))
    return UsageSum(**{name: found[f"{name}_sum"] for name in names}, session_count=found["count"])


def set_budget(session_id: str, max_cost: Decimal | None) -> None:
    """Limit a session's cost; `None` removes the limit. Errors: `BudgetInvalid`, `SessionNotFound`."""
    if max_cost is not None and not (max_cost.is_finite() and 0 <= max_cost < _MOST):
        raise BudgetInvalid(
            Phrase("A budget is an amount from 0 to {most:,}, or nothing; not {cost}.", most=_MOST, cost=max_cost)
        )
    if not Session.objects.filter(pk=session_id).update(max_cost=max_cost):
        raise SessionNotFound(Phrase("There is no session {id!r}.", id=session_id))
