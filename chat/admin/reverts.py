"""Undos and redos in the admin: who took which turn back, and what became of its files. Nothing is done here."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import linked, state, title_of
from chat.models import Revert
from thinkproject.kernel.read_only_admin import column


@admin.register(Revert)
class RevertAdmin(ActionAdmin):
    """Undos and redos, newest first."""

    list_display = ("created_at", "what", "conversation", "turn", "includes_messages", "file_count", "stayed", "person")
    list_filter = ("includes_files", "includes_messages")
    search_fields = ("=id", "=turn_id", "=instance__id")
    search_help_text = _("The exact id of an undo, of its turn, or of its conversation.")
    fields = (
        *("what", "conversation", "turn", "includes_messages", "includes_files", "file_count", "stayed", "person"),
        *("created_at", "redo_of", "id"),
    )
    ordering = ("-created_at", "-id")
    date_hierarchy = "created_at"

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("instance", "actor", "redone_by")

    @admin.display(description=_("what"))
    def what(self, row: Revert) -> str:
        """Say whether it is an undo or a redo, and whether it still stands."""
        if row.redoes_id is not None:
            return state("completed", _("Redo"))
        return state("skipped", _("Undo, redone")) if hasattr(row, "redone_by") else state("aborted", _("Undo"))

    conversation = column(
        _("conversation"),
        lambda row: linked("think_chat_agentinstance", row.instance_id, title_of(row.instance, reads=row.reads)),
    )
    turn = column(_("turn"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id))
    stayed = column(_("files that stayed"), lambda row: row.left_count, ordering="left_count")
    person = column(_("person"), lambda row: row.actor.get_username() if row.actor is not None else "")
    redo_of = column(_("redo of"), lambda row: linked("think_chat_revert", row.redoes_id, row.redoes_id or ""))
