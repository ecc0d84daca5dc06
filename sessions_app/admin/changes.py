"""The history of what models read, in the admin: who changed it, when, and what it was before. It cannot be edited."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from sessions_app.admin.context import is_list
from sessions_app.admin.words import ACTION_WORDS, SUBJECT_WORDS, VIA_WORDS, Words, worded
from sessions_app.models import ContextChange
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyAdmin, column, moment


class ViaFilter(admin.SimpleListFilter):
    """By the way a change came. Choices are known, not from a DISTINCT over the table."""

    title = _("via")
    parameter_name = "via"
    known: Words = VIA_WORDS

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.known.items())

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[ContextChange]) -> QuerySet[ContextChange]:
        return queryset if self.value() is None else queryset.filter(**{self.parameter_name: self.value()})


class ActionFilter(ViaFilter):
    """Filter by the kind of change."""

    title = _("action")
    parameter_name = "action"
    known = ACTION_WORDS


class ChangeAdmin(ReadOnlyAdmin):
    """The history of context changes. Append-only."""

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    list_display = ("what", "holder", "by", "came", "made")
    list_filter = (ViaFilter, ActionFilter, "created_at")
    list_select_related = ("actor", "owner", "session")
    search_fields = ("=subject", "=session__id", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = _('The exact subject ("block:memory"), session or owner.')
    ordering = ("-pk",)
    fields = ("what", "holder", "by", "came", "created_at", "old", "new", "subject")
    readonly_fields = fields

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ContextChange]:
        """Leave the texts to the pages of single changes."""
        rows: QuerySet[ContextChange] = super().get_queryset(request)
        return rows.defer("before", "after") if is_list(request) else rows

    @admin.display(description=_("change"))
    def what(self, row: ContextChange) -> str:
        """The action, and its object."""
        kind, __, name = row.subject.partition(":")
        return f"{worded(row.action, ACTION_WORDS)}: {worded(kind, SUBJECT_WORDS)} {name}"

    @override
    def page_title(self, row: ContextChange) -> str:
        return self.what(row)

    by = column(_("by"), lambda row: str(row.actor or worded(row.via, VIA_WORDS)))
    came = column(_("via"), lambda row: worded(row.via, VIA_WORDS), ordering="via")
    made = column(_("when"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.display(description=_("of"))
    def holder(self, row: ContextChange) -> str:
        """The session or the person that it is about."""
        return str(row.owner) if row.session_id is None else self.session_name(row)

    def session_name(self, row: ContextChange) -> str:
        """The name of a history. The chat gives the conversation's title."""
        return str(row.session)

    old = column(_("before"), lambda row: text_block(row.before))
    new = column(_("after"), lambda row: text_block(row.after))


def text_block(text: str) -> str:
    """A text as it is, with its line breaks."""
    return format_html('<pre class="think-block" tabindex="0">{}</pre>', text) if text else NOTHING
