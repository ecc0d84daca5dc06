"""The first page of the admin, and everybody's usage: figures and plots for administrators. A fixed number of queries.

Titles of conversations that quote a message are shown to those who may read messages, and their ids to others.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timesince import timesince
from django.utils.timezone import get_current_timezone, localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.admin.columns import agent_title, linked, reads_messages, shortened
from chat.admin.pages_of_lower_apps import function_title
from chat.admin.plots import Bar, plot
from chat.models import SideCallKind
from chat.reads import usage
from chat.reads.dashboard import operations
from chat.reads.usage import Figures, UsagePoint, UsageReport, UsageRow
from thinkproject.kernel.read_only_admin import NOTHING, amount

SEES_ALL: Final = "think_chat.view_turn"
"""The permission that shows figures of everybody."""
DAYS: Final = 30
ERROR_DAYS: Final = 7


def dashboard_of(request: HttpRequest) -> dict[str, Any]:
    """The context of the first page; nothing for staff who may not see turns. Seven queries."""
    if not request.user.has_perm(SEES_ALL):
        return {}
    zone = get_current_timezone()
    points = usage.points_of_everybody(DAYS, zone)
    total = sum((point.figures for point in points), Figures())
    errors = usage.errors_by_kind(ERROR_DAYS, zone)
    found = operations()
    return {
        "turns_plot": _turns_plot(points),
        "turns_total": _turns(total.turn_count),
        "failed_total": total.failed_count,
        "cost_plot": _cost_plot(points, days=DAYS),
        "cost_total": amount(total.cost),
        "errors": errors,
        "queues": [(function_title(each.function), each.depth, _since(each.oldest_at)) for each in found.queues],
        "workers": [(each.name, each.running, _since(each.beat_at)) for each in found.workers],
        "parked": found.parked,
        "lost": found.lost,
    }


def usage_page(request: HttpRequest) -> dict[str, Any]:
    """The context of everybody's usage. `?days=` chooses 1, 7 or 30. Six queries."""
    wanted = request.GET.get("days", "")
    days = int(wanted) if wanted in {str(each) for each in usage.DAYS} else 7
    report = usage.usage_of_everybody(days, get_current_timezone())
    has_cost = report.total.cost > 0
    drawn = _cost_plot(report.points, days=days) if has_cost else _turns_plot(report.points, days=days)
    return {
        "title": _("Usage"),
        "days": days,
        "periods": [(1, _("Today")), (7, _("7 days")), (30, _("30 days"))],
        "total": _facts(report.total),
        "plot": drawn,
        "tables": _tables(report, reads=reads_messages(request)),
    }


def _tables(report: UsageReport, *, reads: bool) -> list[tuple[str, str, list[tuple[Any, ...]]]]:
    """Tables by their titles, with the name of what their first column counts."""
    turns = _("Turns")
    return [
        (_("By kind"), _("Count"), _rows(report.by_kind, lambda row: _kind(row.key))),
        (_("By person"), turns, _rows(report.by_person, lambda row: linked("auth_user", row.key or None, row.label))),
        (_("By model"), turns, _rows(report.by_model, lambda row: row.key or _("No model"))),
        (_("By agent"), turns, _rows(report.by_agent, lambda row: agent_title(row.key))),
        (_("By conversation"), turns, _rows(report.by_conversation, lambda row: _conversation(row, reads=reads))),
    ]


def _conversation(row: UsageRow, *, reads: bool) -> Any:
    title = shortened(row.label) if reads and row.label else f"{agent_title(row.agent)} {row.key}"
    return linked("think_chat_agentinstance", row.key, title)


def _kind(key: str) -> Any:
    return _("answer") if key == usage.ANSWER else SideCallKind(key).label


def _rows(rows: Iterable[UsageRow], name: Any) -> list[tuple[Any, ...]]:
    return [
        (
            name(row),
            f"{row.figures.side_call_count if row.key in SideCallKind.values else row.figures.turn_count:,}",
            f"{row.figures.input_tokens + row.figures.output_tokens:,}",
            amount(row.figures.cost),
        )
        for row in rows
    ]


def _facts(figures: Figures) -> str:
    tokens = _("%(tokens)s tokens") % {"tokens": f"{figures.input_tokens + figures.output_tokens:,}"}
    failed = _("%(count)s failed") % {"count": figures.failed_count} if figures.failed_count else ""
    return " · ".join(each for each in (amount(figures.cost), _turns(figures.turn_count), tokens, failed) if each)


def _turns(count: int) -> str:
    return ngettext("%(count)s turn", "%(count)s turns", count) % {"count": f"{count:,}"}


def _turns_plot(points: list[UsagePoint], *, days: int = DAYS) -> str:
    bars = [
        Bar(
            name=_name(point, days),
            value=point.figures.turn_count,
            bad=point.figures.failed_count,
            text=_("%(turns)s, %(failed)s failed")
            % {"turns": _turns(point.figures.turn_count), "failed": point.figures.failed_count}
            if point.figures.failed_count
            else _turns(point.figures.turn_count),
        )
        for point in points
    ]
    return plot(_("Turns by hour") if days == 1 else _("Turns by day"), _time(days), bars)


def _cost_plot(points: list[UsagePoint], *, days: int) -> str:
    bars = [Bar(name=_name(point, days), value=point.figures.cost, text=amount(point.figures.cost)) for point in points]
    return plot(_("Cost by hour") if days == 1 else _("Cost by day"), _time(days), bars)


def _time(days: int) -> str:
    return _("Hour") if days == 1 else _("Day")


def _name(point: UsagePoint, days: int) -> str:
    return date_format(localtime(point.start, timezone.get_current_timezone()), "H:i" if days == 1 else "j M")


def _since(moment: datetime | None) -> str:
    if moment is None:
        return NOTHING
    return timesince(moment) if timezone.now() - moment >= timedelta(minutes=1) else _("less than a minute")
