"""Code of models in the admin: what ran, for which conversation, what it called, and what came of it."""

from typing import Any, Final

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import CONVERSATION, Text, about, linked, noted, shortened, state
from chat.models import Turn
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, block, choice_filter, column, moment
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

    standing = column(_("state"), lambda row: state(*CALL_WORDS[row.status]))
    arguments = column(
        _("arguments"), lambda row: _beginning(row.input if row.edited_input is None else row.edited_input)
    )
    result = column(_("result"), lambda row: NOTHING if row.settled_as is None else _beginning(row.output))
    took = column(_("took"), lambda row: NOTHING if row.settled_as is None else _milliseconds(row.duration_ms))


ExecutionStatusFilter = choice_filter(
    _("state"), "status", {each: (EXECUTION_WORDS[each][1], Q(status=each)) for each in ExecutionStatus}
)


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

    title = column(_("code"), lambda row: shortened(row.code))

    @override
    def page_title(self, row: Any) -> str:
        return str(_("Code in “%(title)s”")) % {"title": about(row, reads=row.reads)}

    conversation = CONVERSATION
    standing = column(_("state"), lambda row: state(*EXECUTION_WORDS[row.status]), ordering="status")

    @admin.display(description=_("begun"), ordering="created_at")
    def began(self, row: Execution) -> str:
        """When it was begun, and how long its last run took."""
        took = str(_("took %(time)s")) % {"time": _milliseconds(row.duration_ms)} if row.ended_at is not None else ""
        return noted(moment(row.created_at), took)

    turn = column(_("turn"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id))
    whole_code = column(_("code"), lambda row: block(row.code))
    whole_value = column(_("value"), lambda row: NOTHING if row.ended_at is None else block(row.value))
    whole_error = column(_("error"), lambda row: block(row.error) if row.error else NOTHING)
    whole_console = column(
        _("console"), lambda row: block("\n".join(_line(each) for each in row.console)) if row.console else NOTHING
    )


def _line(entry: Any) -> str:
    """A line of the console."""
    return f"{entry.get('level', '')}: {entry.get('text', '')}" if isinstance(entry, dict) else str(entry)


def _beginning(value: Any) -> str:
    """A value, cut where it is long."""
    text = dump(value)
    return block(value if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


def _milliseconds(value: int) -> str:
    return str(_("%(count)s ms")) % {"count": f"{value:,}"}
