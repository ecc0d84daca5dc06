"""Base classes shared by the chat's admin pages."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.columns import of_conversation, of_present, reads_messages, with_reader
from chat.agent import registry
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin


class ActionAdmin(ReadOnlyAdmin):
    """With two permissions for actions: Django's own change and delete permission."""

    scope_column: ClassVar[str] = ""
    """The column that names a conversation, where rows have no key to it: its title is read along."""

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the actions: Django's own change permission."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the actions that remove: Django's own delete permission."""
        return request.user.has_perm(f"{self.opts.app_label}.delete_{self.opts.model_name}")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add what the titles depend on, and leave out what is of conversations in *Deleted*."""
        rows = with_reader(of_present(super().get_queryset(request)), request)
        return rows.annotate(**of_conversation(self.scope_column)) if self.scope_column else rows


class PageAdmin(ActionAdmin):
    """With pages of our own besides Django's."""

    def page(self, request: HttpRequest, name: str, **context: Any) -> HttpResponse:
        """Render one of the table's own pages, by the name of its template."""
        base = {**self.admin_site.each_context(request), "opts": self.opts, "reads_messages": reads_messages(request)}
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/{name}.html"
        return TemplateResponse(request, template, {**base, **context})


class AgentFilter(admin.SimpleListFilter):
    """By agent. Choices come from the registry, not from a DISTINCT over the table."""

    title = _("agent")
    parameter_name = "agent"
    column = "agent"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [(info.name, info.title) for info in registry.list_agents()]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() is None else queryset.filter(**{self.column: self.value()})


class AgentOfConversationFilter(AgentFilter):
    """The same, for rows that belong to a conversation."""

    column = "instance__agent"
