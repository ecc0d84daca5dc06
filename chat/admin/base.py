"""Base classes shared by the chat's admin pages."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from typing_extensions import override

from chat.agent import registry
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin


class ActionAdmin(ReadOnlyAdmin):
    """With two permissions for actions: Django's own change and delete permission."""

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the actions: Django's own change permission."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the actions that remove: Django's own delete permission."""
        return request.user.has_perm(f"{self.opts.app_label}.delete_{self.opts.model_name}")


def reads_messages(request: HttpRequest) -> bool:
    """Whether this user may read message content. A provisional title counts: it quotes the first message."""
    return request.user.has_perm("think_sessions.view_message")


class AgentFilter(admin.SimpleListFilter):
    """By agent. Choices come from the registry, not from a DISTINCT over the table."""

    title = "agent"
    parameter_name = "agent"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the agents that are served."""
        return [(info.name, info.title) for info in registry.list_agents()]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen agent."""
        return queryset if self.value() is None else queryset.filter(agent=self.value())


def link_to(view: str, key: str | None) -> str:
    """Link to the page of a row in the admin, where it has one."""
    if key is None:
        return "-"
    try:
        url = reverse(f"admin:{view}_change", args=[key])
    except NoReverseMatch:
        return key  # that app has no admin here
    return format_html('<a href="{}">{}</a>', url, key)
