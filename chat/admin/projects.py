"""Projects of people in the admin: to read. Their owners change them, on the page."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.columns import agent_title, linked
from chat.models import Project
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyAdmin, moment
from tools_app.models import WorkspaceAttachment


@admin.register(Project)
class ProjectAdmin(ReadOnlyAdmin):
    """Projects, the last changed first."""

    list_display = ("name", "owner", "colour", "conversations", "files", "agent_name", "changed")
    list_filter = ("colour", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("=id", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = _("The exact id, or the exact name of the owner.")
    fields = (
        "name",
        "owner",
        "colour",
        "instructions",
        "agent_name",
        "conversations",
        "files",
        "created_at",
        "changed",
    )
    ordering = ("-updated_at", "pk")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        """Add how many conversations are in it, and its workspace."""
        rows: QuerySet[Project] = super().get_queryset(request)
        files = WorkspaceAttachment.objects.filter(scope=OuterRef("pk"))
        return rows.annotate(
            inside=Count("conversations", filter=Q(conversations__deleted_at=None)),
            workspace_id=Subquery(files.values("workspace")[:1]),
            file_count=Subquery(files.values("workspace__file_count")[:1]),
        )

    @admin.display(description=_("conversations"), ordering="inside")
    def conversations(self, row: Any) -> str:
        """Their number, with a link to them."""
        url = reverse("admin:think_chat_agentinstance_changelist")
        return format_html('<a href="{}?project__id__exact={}">{}</a>', url, row.pk, f"{row.inside:,}")

    @admin.display(description=_("files"))
    def files(self, row: Any) -> str:
        """Their number, with a link to the workspace that holds them."""
        return linked("think_tools_storedworkspace", row.workspace_id, f"{row.file_count or 0:,}")

    @admin.display(description=_("agent"), ordering="agent")
    def agent_name(self, row: Project) -> str:
        """The agent that conversations begin with, as people know it."""
        return agent_title(row.agent) if row.agent else NOTHING

    @admin.display(description=_("changed"), ordering="updated_at")
    def changed(self, row: Project) -> str:
        """When its owner changed it last."""
        return moment(row.updated_at)
