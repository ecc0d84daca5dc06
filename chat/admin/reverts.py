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
        """Read along what the columns name."""
        return super().get_queryset(request).select_related("instance", "actor", "redone_by")

    @admin.display(description=_("what"))
    def what(self, row: Revert) -> str:
        """Say whether it is an undo or a redo, and whether it still stands."""
        if row.redoes_id is not None:
            return state("completed", _("Redo"))
        return state("skipped", _("Undo, redone")) if hasattr(row, "redone_by") else state("aborted", _("Undo"))

    @admin.display(description=_("conversation"))
    def conversation(self, row: Any) -> str:
        """Link to it."""
        return linked("think_chat_agentinstance", row.instance_id, title_of(row.instance, reads=row.reads))

    @admin.display(description=_("turn"))
    def turn(self, row: Revert) -> str:
        """Link to the first turn that was taken back, which may be gone."""
        return linked("think_chat_turn", row.turn_id, row.turn_id)

    @admin.display(description=_("files that stayed"), ordering="left_count")
    def stayed(self, row: Revert) -> int:
        """The number of files that stayed as they were."""
        return row.left_count

    @admin.display(description=_("person"))
    def person(self, row: Revert) -> str:
        """The one who did it."""
        return row.actor.get_username() if row.actor is not None else ""

    @admin.display(description=_("redo of"))
    def redo_of(self, row: Revert) -> str:
        """Link to the undo that it takes back."""
        return linked("think_chat_revert", row.redoes_id, row.redoes_id or "")
