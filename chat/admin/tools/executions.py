"""Code of models in the admin: what ran, for which conversation, what it called, and what came of it."""

from typing import Any, Final

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import Text, about, linked, noted, shortened, state
from chat.models import Turn
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, block, moment
from tools_app.models import Execution, ExecutionCall
from tools_app.models.code_runs import ExecutionCallStatus, ExecutionStatus

SHOWN_CHARS: Final = 2_000

EXECUTION_WORDS: dict[str, tuple[str, Text]] = {
    ExecutionStatus.RUNNING: ("running", _("Running")),
    ExecutionStatus.WAITING: ("asked", _("Waits")),
    ExecutionStatus.SUCCEEDED: ("completed", _("Done")),
    ExecutionStatus.FAILED: ("error", _("Failed")),
}
"""Colour and words of each status."""

CALL_WORDS: dict[str, tuple[str, Text]] = {
    ExecutionCallStatus.BEGUN: ("pending", _("Begun")),
    ExecutionCallStatus.ASKED: ("asked", _("Waits for a decision")),
    ExecutionCallStatus.RUNNING: ("running", _("Running")),
    ExecutionCallStatus.WAITING: ("asked", _("Waits")),
    ExecutionCallStatus.SUCCEEDED: ("completed", _("Done")),
    ExecutionCallStatus.FAILED: ("error", _("Failed")),
}


class ExecutionCallInline(ReadOnlyInline):
    """Calls that the code made."""

    template = "admin/think_sessions/read_only_inline.html"
    model = ExecutionCall
    fields = ("name", "standing", "arguments", "result", "took")
    readonly_fields = fields
    ordering = ("ordinal",)

    @admin.display(description=_("state"))
    def standing(self, row: ExecutionCall) -> str:
        """The status, in words."""
        return state(*CALL_WORDS[row.status])

    @admin.display(description=_("arguments"))
    def arguments(self, row: ExecutionCall) -> str:
        """Its arguments: those of the decision, where it changed them."""
        return _beginning(row.input if row.edited_input is None else row.edited_input)

    @admin.display(description=_("result"))
    def result(self, row: ExecutionCall) -> str:
        """The answer to the code."""
        return NOTHING if row.settled_as is None else _beginning(row.output)

    @admin.display(description=_("took"))
    def took(self, row: ExecutionCall) -> str:
        """Milliseconds that it ran."""
        return NOTHING if row.settled_as is None else _milliseconds(row.duration_ms)


class ExecutionStatusFilter(admin.SimpleListFilter):
    """Executions by their status, in the words of the list."""

    title = _("state")
    parameter_name = "status"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return all words."""
        return [(status.value, EXECUTION_WORDS[status][1]) for status in ExecutionStatus]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        return queryset.filter(status=self.value()) if self.value() in set(ExecutionStatus) else queryset


@admin.register(Execution)
class ExecutionAdmin(ActionAdmin):
    """Executions, newest first. Read only: code runs again by itself until it has ended."""

    list_display = ("title", "conversation", "owner", "standing", "began")
    list_filter = (ExecutionStatusFilter, "created_at")
    list_select_related = ("owner",)
    search_fields = ("=key", "=scope", "=turn_id", "=call_id")
    search_help_text = _("The exact id of a conversation, a turn or a call.")
    ordering = ("-pk",)
    inlines = (ExecutionCallInline,)
    fieldsets = (
        (None, {"fields": ("conversation", "owner", "standing", "began", "whole_code")}),
        (_("Result"), {"fields": ("whole_value", "whole_error", "whole_console")}),
        (
            _("Ids"),
            {"classes": ("collapse",), "fields": ("key", "turn", "call_id", "outcome", "seed", "ended_at")},
        ),
    )

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        """Add the conversation, by the turn. Lists read no results."""
        rows: QuerySet[Execution] = super().get_queryset(request)
        turns = Turn.objects.filter(pk=OuterRef("turn_id"))
        columns = {"about_id": "pk", "about_title": "title", "about_name": "name"}
        found = {name: Subquery(turns.values(f"instance__{column}")[:1]) for name, column in columns.items()}
        provisional = Subquery(turns.values("instance__title_is_provisional")[:1])
        annotated: QuerySet[Execution] = rows.annotate(**found, about_provisional=provisional)
        return annotated.defer("value", "console", "error")

    @admin.display(description=_("code"))
    def title(self, row: Execution) -> str:
        """The beginning of the code."""
        return shortened(row.code)

    @override
    def page_title(self, row: Any) -> str:
        """The conversation that it ran for."""
        return str(_("Code in “%(title)s”")) % {"title": about(row, reads=row.reads)}

    @admin.display(description=_("conversation"))
    def conversation(self, row: Any) -> str:
        """Link to the conversation."""
        return linked("think_chat_agentinstance", row.about_id, about(row, reads=row.reads))

    @admin.display(description=_("state"), ordering="status")
    def standing(self, row: Execution) -> str:
        """The status, in words."""
        return state(*EXECUTION_WORDS[row.status])

    @admin.display(description=_("begun"), ordering="created_at")
    def began(self, row: Execution) -> str:
        """When it was begun, and how long its last run took."""
        took = str(_("took %(time)s")) % {"time": _milliseconds(row.duration_ms)} if row.ended_at is not None else ""
        return noted(moment(row.created_at), took)

    @admin.display(description=_("turn"))
    def turn(self, row: Execution) -> str:
        """Link to the turn."""
        return linked("think_chat_turn", row.turn_id, row.turn_id)

    @admin.display(description=_("code"))
    def whole_code(self, row: Execution) -> str:
        """All of it."""
        return block(row.code)

    @admin.display(description=_("value"))
    def whole_value(self, row: Execution) -> str:
        """The value that the code gave."""
        return NOTHING if row.ended_at is None else block(row.value)

    @admin.display(description=_("error"))
    def whole_error(self, row: Execution) -> str:
        """Why it failed."""
        return block(row.error) if row.error else NOTHING

    @admin.display(description=_("console"))
    def whole_console(self, row: Execution) -> str:
        """The output of the code on its console."""
        return block("\n".join(_line(each) for each in row.console)) if row.console else NOTHING


def _line(entry: Any) -> str:
    """A line of the console."""
    return f"{entry.get('level', '')}: {entry.get('text', '')}" if isinstance(entry, dict) else str(entry)


def _beginning(value: Any) -> str:
    """A value, cut where it is long."""
    text = dump(value)
    return block(value if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


def _milliseconds(value: int) -> str:
    return str(_("%(count)s ms")) % {"count": f"{value:,}"}
