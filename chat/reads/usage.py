"""Usage of models and its cost: by time, model, agent, conversation and person. Reads only.

Summed in the database from the rows of turns, which have the figures of their provider and the prices of their day.
Temporary conversations and those in *Deleted* count, together and without a name: neither is in any list. Of
titles, summaries and compactions a conversation's own total knows (`chat/instances/spending.py`), not these: they have
no row of their own.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from django.db.models import Case, CharField, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, TruncDay, TruncHour
from django.utils import timezone

from chat.models import Turn

MOST_ROWS: Final = 25
"""Rows of a table: those that cost or used most."""
DAYS: Final = (1, 7, 30)
_PLACES: Final = Decimal("1e-10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Sums of turns. `failed_count`: turns that ended with an error."""

    turn_count: int = 0
    failed_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(**{name: getattr(self, name) + getattr(other, name) for name in _NAMES})


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePoint:
    """A piece of time, and what was used in it."""

    start: datetime
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """A line of a table. `key`: a model, an agent, or the id of a conversation or person; `label`: its name.

    Without a key it is the conversations that no list has.
    """

    key: str
    label: str
    agent: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Usage since `since`: every piece of time, also where nothing was used. By hours where it is one day."""

    days: int
    since: datetime
    points: list[UsagePoint]
    total: Figures
    by_model: list[UsageRow]
    by_agent: list[UsageRow]
    by_conversation: list[UsageRow]
    by_person: list[UsageRow]


_NAMES: Final = ("turn_count", "failed_count", "input_tokens", "output_tokens", "cached_tokens", "cost")


def usage_of_person(user_id: Any, days: int, zone: tzinfo) -> UsageReport:
    """Usage of a person's conversations: today, or the last days with today. Four queries."""
    return _report(Turn.objects.filter(instance__owner_id=user_id), days, zone, with_people=False)


def usage_of_everybody(days: int, zone: tzinfo) -> UsageReport:
    """The same of all people, for administrators. Five queries."""
    return _report(Turn.objects.all(), days, zone, with_people=True)


def points_of_everybody(days: int, zone: tzinfo) -> list[UsagePoint]:
    """The use over time alone. One query."""
    since = begin_of(days, zone)
    return _points(Turn.objects.filter(accepted_at__gte=since), days, since, zone)


def errors_by_kind(days: int, zone: tzinfo) -> list[tuple[str, int]]:
    """Codes of errors with which turns ended, the most frequent first. One query."""
    found = Turn.objects.filter(accepted_at__gte=begin_of(days, zone)).exclude(error_code="")
    counted = found.values("error_code").annotate(count=Count("pk")).order_by("-count", "error_code")
    return [(row["error_code"], row["count"]) for row in counted[:MOST_ROWS]]


def begin_of(days: int, zone: tzinfo) -> datetime:
    """Midnight of the first of so many days, today being the last."""
    today = timezone.now().astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return today if days == 1 else _midnight(today, 1 - days)


def _midnight(day: datetime, more: int) -> datetime:
    """Days are counted by the calendar: one with a change of the clock has 23 or 25 hours."""
    naive = day.replace(tzinfo=None) + timedelta(days=more)
    return naive.replace(tzinfo=day.tzinfo)


def _report(turns: QuerySet[Turn], days: int, zone: tzinfo, *, with_people: bool) -> UsageReport:
    since = begin_of(days, zone)
    lately = turns.filter(accepted_at__gte=since)
    points = _points(lately, days, since, zone)
    total = sum((point.figures for point in points), Figures())
    return UsageReport(
        days=days,
        since=since,
        points=points,
        total=total,
        by_model=_table(lately, key=F("model_name"), label=F("model_name")),
        by_agent=_table(lately, key=F("instance__agent"), label=F("instance__agent")),
        by_conversation=_table(
            lately, key=_listed("instance_id"), label=_listed("instance__title"), of_agent=_listed("instance__agent")
        ),
        by_person=_table(lately, key=F("instance__owner_id"), label=F("instance__owner__username"))
        if with_people
        else [],
    )


def _summed(turns: QuerySet[Turn], **groups: Any) -> QuerySet[Any]:
    return (
        turns.order_by()
        .values(**groups)
        .annotate(
            turn_count=Count("pk"),
            failed_count=Count("pk", filter=~Q(error_code="")),
            **{f"{name}_sum": Coalesce(Sum(name), 0) for name in ("input_tokens", "output_tokens", "cached_tokens")},
            cost_sum=Coalesce(Sum("cost"), Decimal(0)),
        )
    )


def _figures(row: dict[str, Any]) -> Figures:
    return Figures(
        turn_count=row["turn_count"],
        failed_count=row["failed_count"],
        input_tokens=row["input_tokens_sum"],
        output_tokens=row["output_tokens_sum"],
        cached_tokens=row["cached_tokens_sum"],
        cost=Decimal(row["cost_sum"]).quantize(_PLACES),  # SQLite sums what is nearly a decimal
    )


def _points(turns: QuerySet[Turn], days: int, since: datetime, zone: tzinfo) -> list[UsagePoint]:
    trunc = TruncHour if days == 1 else TruncDay
    rows = _summed(turns, start=trunc("accepted_at", tzinfo=zone))
    found = {row["start"].astimezone(UTC): _figures(row) for row in rows}
    starts = _hours(since) if days == 1 else [_midnight(since, number) for number in range(days)]
    return [UsagePoint(start=start, figures=found.get(start.astimezone(UTC), Figures())) for start in starts]


def _hours(midnight: datetime) -> list[datetime]:
    first, end = midnight.astimezone(UTC), _midnight(midnight, 1).astimezone(UTC)
    count = int((end - first) / timedelta(hours=1))
    return [(first + timedelta(hours=number)).astimezone(midnight.tzinfo) for number in range(count)]


def _listed(column: str) -> Case:
    """A column of a turn's conversation, empty where that is in no list."""
    is_unlisted = Q(instance__is_temporary=True) | Q(instance__deleted_at__isnull=False)
    return Case(When(is_unlisted, then=Value("")), default=F(column), output_field=CharField())


def _table(turns: QuerySet[Turn], **groups: Any) -> list[UsageRow]:
    rows: Any = _summed(turns, **groups).order_by("-cost_sum", "-input_tokens_sum", "key")
    return [
        UsageRow(
            key="" if row["key"] is None else str(row["key"]),
            label=row["label"] or "",
            agent=row.get("of_agent", ""),
            figures=_figures(row),
        )
        for row in rows[:MOST_ROWS]
    ]
