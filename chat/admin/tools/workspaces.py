"""Workspaces in the admin: whose they are, which conversations use them, and how much is in them."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import CONVERSATION, about, noted, of_conversation, with_reader
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, column, moment
from tools_app.models import StoredWorkspace, WorkspaceAttachment


def with_conversation(rows: QuerySet[Any], workspace: str) -> QuerySet[Any]:
    """Annotate with the conversation that used a workspace first, and how many there are. `workspace`: its column."""
    links = WorkspaceAttachment.objects.filter(workspace=OuterRef(workspace))
    count = links.order_by().values("workspace").annotate(count=Count("pk")).values("count")
    first = links.order_by("pk").values("scope")[:1]
    annotated = rows.annotate(first_scope=Subquery(first), use_count=Coalesce(Subquery(count), 0))
    found: QuerySet[Any] = annotated.annotate(**of_conversation("first_scope"))
    return found


class AttachedInline(ReadOnlyInline):
    """Conversations that use a workspace."""

    template = "admin/think_sessions/read_only_inline.html"
    model = WorkspaceAttachment
    verbose_name_plural = _("conversations that use it")
    fields = ("conversation", "name", "can_write", "created_at")
    readonly_fields = fields
    ordering = ("pk",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkspaceAttachment]:
        rows: QuerySet[WorkspaceAttachment] = super().get_queryset(request)
        return with_reader(rows.annotate(**of_conversation("scope")), request)

    conversation = CONVERSATION


@admin.register(StoredWorkspace)
class WorkspaceAdmin(ActionAdmin):
    """Workspaces, lately changed ones first."""

    list_display = ("used_by", "owner", "name", "files", "size", "changed")
    list_filter = ("modified_at",)
    list_select_related = ("owner",)
    search_fields = ("=id", "=attachments__scope", "=name", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact id of a workspace or conversation, its name, or its owner.")
    ordering = ("-modified_at", "pk")
    inlines = (AttachedInline,)
    fieldsets = (
        (None, {"fields": ("used_by", "owner", "name", "files", "directory_count", "size", "in_storage", "changed")}),
        (_("Ids"), {"classes": ("collapse",), "fields": ("id", "version", "created_at")}),
    )

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[StoredWorkspace]:
        """Add the conversation that used it first, and how many there are."""
        return with_conversation(super().get_queryset(request).filter(root=""), "pk")

    @admin.display(description=_("used by"))
    def used_by(self, row: Any) -> str:
        """The title of the conversation that used it first."""
        others = row.use_count - 1
        note = ngettext("and %(count)d other", "and %(count)d others", others) % {"count": others} if others > 0 else ""
        return noted(about(row, reads=row.reads), note)

    @override
    def page_title(self, row: Any) -> str:
        shown = about(row, reads=row.reads)
        return str(row.name) if shown == NOTHING else f"{shown} · {row.name}"

    @admin.display(description=_("files"), ordering="file_count")
    def files(self, row: StoredWorkspace) -> str:
        """Their number, with a link to them."""
        try:
            url = reverse("admin:think_tools_workspaceentry_changelist")
        except NoReverseMatch:
            return f"{row.file_count:,}"
        return format_html('<a href="{}?workspace__id__exact={}">{}</a>', url, row.pk, f"{row.file_count:,}")

    size = column(_("size"), lambda row: filesizeformat(row.byte_count), ordering="byte_count")
    in_storage = column(_("large files in storage"), lambda row: f"{row.object_count:,}")
    changed = column(_("changed"), lambda row: moment(row.modified_at), ordering="modified_at")
