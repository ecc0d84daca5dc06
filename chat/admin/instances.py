"""Conversations in the admin: found by their titles, read as conversations, with what can be done about them."""

import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.ability_pages import AbilityPages
from chat.admin.base import AgentFilter, PageAdmin
from chat.admin.columns import (
    ASKED,
    agent_title,
    linked,
    noted,
    reads_messages,
    title_of,
    turn_state,
    with_newest_turn,
)
from chat.admin.conversation_actions import ConversationActions
from chat.admin.conversation_page import page_of
from chat.admin.instance_pages import InstancePages
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from sessions_app.admin.confirming import confirmation
from sessions_app.admin.sessions import ArchivedFilter
from sessions_app.models import Session
from thinkproject.kernel.read_only_admin import NOTHING, amount, choice_filter, column, moment
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

_USERNAME = get_user_model().USERNAME_FIELD
_ASKED = ToolCallRecord.objects.filter(scope=OuterRef("pk"), status=CallStatus.ASKED)

WaitingFilter = choice_filter(_("decisions"), "waiting", {"1": (ASKED, Q(Exists(_ASKED)))})


@admin.register(AgentInstance)
class AgentInstanceAdmin(PageAdmin):
    """Conversations. Their pages show what was said, a page at a time, and what was done about it."""

    change_form_template = "admin/think_chat/agentinstance/change_form.html"
    list_display = ("shown_title", "owner", "agent_name", "standing", "requests", "cost", "last_active")
    list_filter = (AgentFilter, WaitingFilter, ArchivedFilter, "active_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=name", "^title", f"=owner__{_USERNAME}")
    search_help_text = _("The exact id, name or owner, or how the title begins.")
    ordering = ("-active_at", "id")
    fields = (
        *("id", "name", "owner", "agent", "parent", "project_link", "session_link", "turn_count", "generation"),
        *(
            "created_at",
            "active_at",
            "seen_at",
            "pinned_at",
            "archived_at",
            "is_temporary",
            "configuration",
            "state",
            "state_version",
        ),
    )
    actions = ("delete_conversations",)

    @override
    def get_search_fields(self, request: HttpRequest) -> list[str]:
        """Return the fields to search; a search by title would disclose titles."""
        return [name for name in self.search_fields if name != "^title" or reads_messages(request)]

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentInstance]:
        """Add the state of the newest turn and the cost of the sessions; sub-agents have their own line.

        What its owner deleted is not there for staff either: an action on it would reach what has its address by now.
        """
        rows: QuerySet[AgentInstance] = super().get_queryset(request).filter(deleted_at=None)
        costs = Session.objects.filter(scope=OuterRef("pk")).order_by().values("scope").annotate(all=Sum("cost"))
        return with_newest_turn(rows).annotate(own_cost=Subquery(costs.values("all")), is_asked=Exists(_ASKED))

    shown_title = column(_("conversation"), lambda row: title_of(row, reads=vars(row)["reads"]), ordering="title")
    agent_name = column(_("agent"), lambda row: agent_title(row.agent), ordering="agent")

    @admin.display(description=_("state"))
    def standing(self, row: AgentInstance) -> str:
        """The state of its newest turn."""
        found = vars(row)
        if found["turn_status"] is None and not found["is_asked"]:
            return NOTHING
        return turn_state(found["turn_status"], found["turn_reason"], found["turn_error"], is_asked=found["is_asked"])

    requests = column(_("requests"), lambda row: f"{row.turn_count:,}", ordering="turn_count")
    cost = column(_("cost"), lambda row: amount(vars(row)["own_cost"]))

    @admin.display(description=_("last active"), ordering="active_at")
    def last_active(self, row: AgentInstance) -> str:
        """When a message was last accepted, and whether it is temporary, archived or pinned."""
        states = (
            (row.is_temporary, _("temporary")),
            (row.archived_at is not None, _("archived")),
            (row.pinned_at is not None, _("pinned")),
        )
        return noted(moment(row.active_at), next((word for is_so, word in states if is_so), ""))

    session_link = column(
        _("history"), lambda row: linked("think_sessions_session", row.session_id, row.session_id or NOTHING)
    )

    @admin.display(description=_("project"))
    def project_link(self, row: AgentInstance) -> str:
        """Link to the project that its owner has put it into."""
        return linked("think_chat_project", row.project_id, row.project.name if row.project else NOTHING)

    @admin.display(description=_("configuration"))
    def configuration(self, row: AgentInstance) -> str:
        """The configuration, with a link to its edit page."""
        shown = json.dumps(row.config, indent=2, ensure_ascii=True) if row.config_version else str(_("Never set"))
        url = reverse("admin:think_chat_agentinstance_config", args=[row.pk])
        label = str(_("Configuration, version %(version)d")) % {"version": row.config_version}
        return format_html('<pre class="think-block" tabindex="0">{}</pre><a href="{}">{}</a>', shown, url, label)

    @admin.action(description=_("Delete with everything in it"), permissions=["remove"])
    def delete_conversations(self, request: HttpRequest, queryset: QuerySet[AgentInstance]) -> HttpResponse | None:
        """Delete the selected conversations."""
        chosen = list(queryset)
        asking = confirmation(
            self,
            request,
            action="delete_conversations",
            title=_("Delete these conversations?"),
            consequence=_(
                "Their messages, turns, files and sub-agents go with them; what a fork shares stays in the fork. "
                "This cannot be undone."
            ),
            rows=[(row.pk, f"{self.shown_title(row)}, {row.owner or NOTHING}") for row in chosen],
            button=_("Delete"),
        )
        if asking is not None:
            return asking
        self.log_deletions(request, queryset)
        for row in chosen:
            delete_instance(row)
        text = ngettext("%(count)d conversation was deleted.", "%(count)d conversations were deleted.", len(chosen))
        self.message_user(request, text % {"count": len(chosen)}, messages.SUCCESS)
        return None

    @override
    def get_urls(self) -> list[URLPattern]:
        pages = (InstancePages(self), AbilityPages(self), ConversationActions(self))
        return [*(url for each in pages for url in each.urls()), *super().get_urls()]

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the conversation: who, when, what, and what can be done about it."""
        context = dict(extra_context or {})
        instance = self.get_object(request, unquote(object_id))
        if instance is not None and self.has_view_permission(request, instance):
            context |= page_of(request, instance)
        return super().change_view(request, object_id, form_url, context)

    @override
    def page_title(self, row: AgentInstance) -> str:
        return str(self.shown_title(row))
