"""Usage of models and its cost: by time, model, agent, conversation and person. Reads only.

Summed in the database from the rows of turns and of what models do beside answers (`SideCall`): both have the figures
of their provider and the prices of their day. Temporary conversations and those in *Deleted* count, together and
without a name: neither is in any list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from django.db import connection
from django.db.models import Case, CharField, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, TruncDay, TruncHour
from django.utils import timezone

from chat.models import SideCall, Turn

MOST_ROWS: Final = 25
"""Rows of a table: those that cost or used most."""
DAYS: Final = (1, 7, 30)
_PLACES: Final = Decimal("1e-10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Sums. `failed_count`: turns that ended with an error. `side_call_count`: titles, summaries and the like."""

    turn_count: int = 0
    failed_count: int = 0
    side_call_count: int = 0
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
    """A line of a table. `key`: a model, an agent, a kind, or the id of a conversation or person; `label`: its name.

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
    by_kind: list[UsageRow]
    by_model: list[UsageRow]
    by_agent: list[UsageRow]
    by_conversation: list[UsageRow]
    by_person: list[UsageRow]


ANSWER: Final = "answer"
"""The kind of what turns used; the others are those of `SideCallKind`."""
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")
_COUNTS: Final = ("turn_count", "failed_count", "side_call_count")
_NAMES: Final = (*_COUNTS, *_TOKENS, "cost")


@dataclass(frozen=True, slots=True)
class _Used:
    """Turns and calls of models beside them: the rows that are counted."""

    turns: QuerySet[Turn]
    side_calls: QuerySet[SideCall]

    @property
    def rows(self) -> tuple[QuerySet[Any], QuerySet[Any]]:
        return self.turns, self.side_calls


def usage_of_person(user_id: Any, days: int, zone: tzinfo) -> UsageReport:
    """Usage of a person's conversations: today, or the last days with today. Five queries."""
    used = _used_since(begin_of(days, zone), instance__owner_id=user_id)
    return _report(used, days, zone, with_people=False)


def usage_of_everybody(days: int, zone: tzinfo) -> UsageReport:
    """The same of all people, for administrators. Six queries."""
    return _report(_used_since(begin_of(days, zone)), days, zone, with_people=True)


def points_of_everybody(days: int, zone: tzinfo) -> list[UsagePoint]:
    """The use over time alone. Two queries."""
    return _over_time(_used_since(begin_of(days, zone)), days, zone)[0]


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


def _used_since(since: datetime, **whose: Any) -> _Used:
    return _Used(
        Turn.objects.filter(accepted_at__gte=since, **whose), SideCall.objects.filter(created_at__gte=since, **whose)
    )


def _report(used: _Used, days: int, zone: tzinfo, *, with_people: bool) -> UsageReport:
    points, by_kind = _over_time(used, days, zone)
    return UsageReport(
        days=days,
        since=begin_of(days, zone),
        points=points,
        total=sum((point.figures for point in points), Figures()),
        by_kind=by_kind,
        by_model=_table(used, key=F("model_name"), label=F("model_name")),
        by_agent=_table(used, key=F("instance__agent"), label=F("instance__agent")),
        by_conversation=_table(
            used, key=_listed("instance_id"), label=_listed("instance__title"), of_agent=_listed("instance__agent")
        ),
        by_person=_table(used, key=F("instance__owner_id"), label=F("instance__owner__username"))
        if with_people
        else [],
    )


def _summed(rows: QuerySet[Any], **groups: Any) -> QuerySet[Any]:
    """Sums of turns, or of calls beside them, in the same columns."""
    are_turns = rows.model is Turn
    counts = {
        "turn_count": Count("pk") if are_turns else Value(0),
        "failed_count": Count("pk", filter=~Q(error_code="")) if are_turns else Value(0),
        "side_call_count": Value(0) if are_turns else Count("pk"),
    }
    sums = {f"{name}_sum": Coalesce(Sum(name), 0) for name in _TOKENS} | {"cost_sum": Coalesce(Sum("cost"), Decimal(0))}
    found: QuerySet[Any] = rows.order_by().values(**groups).annotate(**counts, **sums)
    return found


def _figures(row: Mapping[str, Any]) -> Figures:
    return Figures(
        **{name: int(row[name]) for name in _COUNTS},
        **{name: int(row[f"{name}_sum"]) for name in _TOKENS},
        cost=Decimal(row["cost_sum"]).quantize(_PLACES),  # SQLite sums what is nearly a decimal
    )


def _over_time(used: _Used, days: int, zone: tzinfo) -> tuple[list[UsagePoint], list[UsageRow]]:
    """The use by pieces of time, and by kinds: those of which there is any, the dearest first."""
    trunc = TruncHour if days == 1 else TruncDay
    turns = _summed(used.turns, start=trunc("accepted_at", tzinfo=zone), sort=Value(ANSWER))
    side_calls = _summed(used.side_calls, start=trunc("created_at", tzinfo=zone), sort=F("kind"))
    by_start: dict[datetime, Figures] = {}
    by_kind: dict[str, Figures] = {}
    for row in (*turns, *side_calls):
        figures, start = _figures(row), row["start"].astimezone(UTC)
        by_start[start] = by_start.get(start, Figures()) + figures
        by_kind[row["sort"]] = by_kind.get(row["sort"], Figures()) + figures
    since = begin_of(days, zone)
    starts = _hours(since) if days == 1 else [_midnight(since, number) for number in range(days)]
    points = [UsagePoint(start=start, figures=by_start.get(start.astimezone(UTC), Figures())) for start in starts]
    kinds = sorted(by_kind.items(), key=lambda item: (-item[1].cost, -item[1].input_tokens, item[0]))
    return points, [UsageRow(key=key, label=key, agent="", figures=figures) for key, figures in kinds]


def _hours(midnight: datetime) -> list[datetime]:
    first, end = midnight.astimezone(UTC), _midnight(midnight, 1).astimezone(UTC)
    count = int((end - first) / timedelta(hours=1))
    return [(first + timedelta(hours=number)).astimezone(midnight.tzinfo) for number in range(count)]


def _listed(column: str) -> Case:
    """A column of a row's conversation, empty where that is in no list."""
    is_unlisted = Q(instance__is_temporary=True) | Q(instance__deleted_at__isnull=False)
    return Case(When(is_unlisted, then=Value("")), default=F(column), output_field=CharField())


def _table(used: _Used, **groups: Any) -> list[UsageRow]:
    """The dearest lines of both together, in one query: summed apart, and then as one by their key."""
    turns, side_calls = (_summed(rows, **groups) for rows in used.rows)
    inner, params = turns.union(side_calls, all=True).query.sql_with_params()
    sums = (*_COUNTS, *(f"{name}_sum" for name in _TOKENS), "cost_sum")
    named = ", ".join(f'"{name}"' for name in groups)
    columns = ", ".join(f'SUM("{name}") AS "{name}"' for name in sums)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {named}, {columns} FROM ({inner}) AS used GROUP BY {named}"  # noqa: S608 - names of ours alone
            ' ORDER BY SUM("cost_sum") DESC, SUM("input_tokens_sum") DESC, "key" LIMIT %s',
            [*params, MOST_ROWS],
        )
        found = [dict(zip((*groups, *sums), row, strict=True)) for row in cursor.fetchall()]
    return [
        UsageRow(
            key="" if row["key"] is None else str(row["key"]),
            label=row["label"] or "",
            agent=row.get("of_agent", ""),
            figures=_figures(row),
        )
        for row in found
    ]
