"""Feedback in the admin: which answers people found good or bad, and why."""

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.columns import linked, of_present
from chat.models import MessageFeedback
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyAdmin, column, moment


@admin.register(MessageFeedback)
class FeedbackAdmin(ReadOnlyAdmin):
    """Feedback, the newest first."""

    list_display = ("message_id", "is_good", "why", "user", "conversation", "changed")
    list_filter = ("is_good", "instance__agent", "updated_at")
    list_select_related = ("user", "instance")
    search_fields = (f"=user__{get_user_model().USERNAME_FIELD}", "=instance__id", "=message_id")
    search_help_text = _("The exact name of the person, or the exact id of the conversation or the message.")
    fields = ("message_id", "is_good", "reason", "user", "conversation", "changed")
    ordering = ("-updated_at", "-id")

    why = column(_("reason"), lambda row: (row.reason if len(row.reason) <= 120 else f"{row.reason[:120]}…") or NOTHING)
    conversation = column(
        _("conversation"), lambda row: linked("think_chat_agentinstance", row.instance_id, row.instance_id)
    )
    changed = column(_("changed"), lambda row: moment(row.updated_at), ordering="updated_at")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[MessageFeedback]:
        """Leave out what is about deleted conversations."""
        return of_present(super().get_queryset(request))
