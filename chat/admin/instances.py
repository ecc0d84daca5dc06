"""Conversations in the admin: contents, costs, configuration, pruning and table sizes."""

import json
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from typing_extensions import override

from chat.admin.base import ActionAdmin, AgentFilter, link_to, reads_messages
from chat.conversations import services
from chat.conversations.pruning import MAX_DAYS, MAX_PLANNED, PruneRule, plan_pruning, prune_conversations
from chat.errors import ConfigChanged, ConfigInvalid, InputInvalid
from chat.instances.config import ConfigView, save_config, view_config
from chat.instances.rows import key_of
from chat.instances.spending import spending
from chat.models import AgentInstance
from chat.operations.table_sizes import database_size
from sessions_app.admin.sessions import ArchivedFilter
from sessions_app.models import Session

_USERNAME = get_user_model().USERNAME_FIELD


class PruneForm(forms.Form):
    """A rule by which conversations go."""

    days = forms.IntegerField(label="Not active for (days)", required=False, min_value=0, max_value=MAX_DAYS)
    keep = forms.IntegerField(label="Not among the newest of their owner (count)", required=False, min_value=0)
    owner = forms.CharField(label="Of this person (user name)", required=False, max_length=200)
    include_all = forms.BooleanField(label="Also those that are not archived", required=False)

    def clean_owner(self) -> Any:
        """Find the person."""
        name = self.cleaned_data["owner"]
        found = get_user_model()._default_manager.filter(**{_USERNAME: name}).first() if name else None
        if name and found is None:
            raise forms.ValidationError("There is no user of this name.")
        return found

    @override
    def clean(self) -> dict[str, Any]:
        """Build the rule."""
        data = super().clean() or {}
        if not self.errors:
            owner = data["owner"]
            try:
                data["rule"] = PruneRule(
                    days=data["days"],
                    keep=data["keep"],
                    owner_id=None if owner is None else owner.pk,
                    archived_only=not data["include_all"],
                )
            except InputInvalid as error:
                raise forms.ValidationError(error.message) from error
        return data


class ConfigForm(forms.Form):
    """A configuration as JSON, over the version that was shown."""

    config = forms.CharField(
        label="Configuration (JSON)",
        widget=forms.Textarea(attrs={"rows": 20, "cols": 80, "spellcheck": "false", "class": "vLargeTextField"}),
        max_length=2_000_000,
    )
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def clean_config(self) -> Any:
        """Decode it."""
        try:
            return json.loads(self.cleaned_data["config"])
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is no JSON: {error}") from error

    def store(self, instance: AgentInstance) -> bool:
        """Store it; false, with an error in the form, when it does not fit or was changed meanwhile."""
        try:
            save_config(key_of(instance), self.cleaned_data["config"], version=self.cleaned_data["version"])
        except ConfigInvalid as error:
            self.add_error("config", error.message)
        except ConfigChanged as error:
            self.add_error(None, f"{error.message} Reload the page, then make your change again.")
        return not self.errors


class AgentInstanceAdmin(ActionAdmin):
    """Conversations, with links to their messages, turns and sessions."""

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    list_display = ("id", "owner", "agent", "name", "title", "turn_count", "cost", "active_at", "conversation")
    list_filter = (AgentFilter, ArchivedFilter, "active_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=name", "^title", f"=owner__{_USERNAME}")
    search_help_text = "The exact id, name or owner, or how the title begins."
    ordering = ("-active_at", "id")
    fields = (
        *("id", "owner", "parent", "agent", "name", "title", "conversation", "histories", "turns", "turn_count"),
        *("spent", "configuration", "generation", "created_at", "active_at", "seen_at", "pinned_at", "archived_at"),
        *("state", "state_version"),
    )
    actions = ("delete_conversations",)

    @override
    def get_list_display(self, request: HttpRequest) -> Any:
        """Without titles for who may not read messages."""
        return [self._title_field(request) if name == "title" else name for name in self.list_display]

    @override
    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """As in the list."""
        return [self._title_field(request) if name == "title" else name for name in self.fields]

    @override
    def get_search_fields(self, request: HttpRequest) -> list[str]:
        """Return the fields to search; a search by title would disclose titles."""
        return [name for name in self.search_fields if name != "^title" or reads_messages(request)]

    def _title_field(self, request: HttpRequest) -> str:
        return "title" if reads_messages(request) else "given_title"

    @admin.display(description="title")
    def given_title(self, row: AgentInstance) -> str:
        """The title, unless it is the first words of a message."""
        return "-" if row.title_is_provisional else row.title

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentInstance]:
        """Add the cost of the sessions; sub-agents have their own line."""
        rows: QuerySet[AgentInstance] = super().get_queryset(request)
        costs = Session.objects.filter(scope=OuterRef("pk")).order_by().values("scope").annotate(all=Sum("cost"))
        return rows.annotate(own_cost=Subquery(costs.values("all")))

    @admin.display(description="conversation")
    def conversation(self, row: AgentInstance) -> str:
        """Link to the current session."""
        return link_to("think_sessions_session", row.session_id)

    @admin.display(description="histories")
    def histories(self, row: AgentInstance) -> str:
        """Link to all sessions inside."""
        url = reverse("admin:think_sessions_session_changelist")
        return format_html('<a href="{}?q={}">sessions</a>', url, row.pk)

    @admin.display(description="turns")
    def turns(self, row: AgentInstance) -> str:
        """Link to the turns."""
        url = reverse("admin:think_chat_turn_changelist")
        return format_html('<a href="{}?instance__id__exact={}">turns</a>', url, row.pk)

    @admin.display(description="cost")
    def cost(self, row: AgentInstance) -> str:
        """The cost without sub-agents."""
        return _amount(getattr(row, "own_cost", None) or 0)

    @admin.display(description="cost")
    def spent(self, row: AgentInstance) -> str:
        """The cost including sub-agents."""
        found = spending(row)
        return (
            f"{_amount(found.total.cost)} ({_amount(found.own.cost)} itself, {_amount(found.sub_agents.cost)} "
            f"sub-agents); {found.total.input_tokens:,} tokens in, {found.total.output_tokens:,} out"
        )

    @admin.display(description="configuration")
    def configuration(self, row: AgentInstance) -> str:
        """The configuration, with a link to its edit page."""
        shown = json.dumps(row.config, indent=2, ensure_ascii=True) if row.config_version else "never set"
        url = reverse("admin:think_chat_agentinstance_config", args=[row.pk])
        page = '<pre class="think-block" tabindex="0">{}</pre><a href="{}">Configuration, version {}</a>'
        return format_html(page, shown, url, row.config_version)

    @admin.action(description="Delete with everything in it", permissions=["remove"])
    def delete_conversations(self, request: HttpRequest, queryset: QuerySet[AgentInstance]) -> None:
        """Delete the selected conversations."""
        chosen = list(queryset)
        for row in chosen:
            services.delete_instance(row)
        self.message_user(request, f"{len(chosen)} deleted.", messages.SUCCESS)

    @override
    def get_urls(self) -> list[URLPattern]:
        """Add the pages."""
        wrap, name = self.admin_site.admin_view, "think_chat_agentinstance"
        return [
            path("prune/", wrap(self.prune_view), name=f"{name}_prune"),
            path("storage/", wrap(self.storage_view), name=f"{name}_storage"),
            path("<str:instance_id>/config/", wrap(self.config_view), name=f"{name}_config"),
            *super().get_urls(),
        ]

    def prune_view(self, request: HttpRequest) -> HttpResponse:
        """Preview a pruning rule (GET), then delete the previewed conversations that still match it (POST)."""
        if not self.has_view_permission(request) or not self.has_remove_permission(request):
            raise PermissionDenied
        given = request.POST or request.GET
        form = PruneForm(given or None)
        if not form.is_bound or not form.is_valid():
            return self._page(request, "prune", title="Prune conversations", form=form)
        rule, now = form.cleaned_data["rule"], timezone.now()
        if request.method == "POST":
            removed = prune_conversations(rule, now, request.POST.getlist("id")[:MAX_PLANNED])
            self.message_user(request, f"{removed} conversations removed.", messages.SUCCESS)
            return HttpResponseRedirect(f"{request.path}?{request.GET.urlencode()}")
        return self._page(request, "prune", title="Prune conversations", form=form, plan=plan_pruning(rule, now))

    def storage_view(self, request: HttpRequest) -> HttpResponse:
        """Show the size of each table in bytes."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self._page(request, "storage", title="Storage", size=database_size())

    def config_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Show a configuration, and store a new one if the class accepts it."""
        instance = self.get_object(request, instance_id)
        if not self.has_view_permission(request) or not self.has_manage_permission(request):
            raise PermissionDenied
        if instance is None:
            raise Http404
        view = view_config(instance)
        form = ConfigForm(request.POST if request.method == "POST" else None, initial=_initial(view))
        if form.is_bound and form.is_valid() and form.store(instance):
            self.log_change(request, instance, "Configuration changed.")
            self.message_user(request, "The configuration was changed.", messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:think_chat_agentinstance_change", args=[instance.pk]))
        schema = None if view.config_schema is None else json.dumps(view.config_schema, indent=2)
        title = f"Configuration of {instance}"
        return self._page(request, "config", title=title, form=form, instance=instance, schema=schema)

    def _page(self, request: HttpRequest, name: str, **context: Any) -> HttpResponse:
        base = {**self.admin_site.each_context(request), "opts": self.opts, "reads_messages": reads_messages(request)}
        return TemplateResponse(request, f"admin/think_chat/agentinstance/{name}.html", {**base, **context})


def _initial(view: ConfigView) -> dict[str, Any]:
    return {"config": json.dumps(view.config, indent=2, ensure_ascii=False), "version": view.version}


def _amount(value: Any) -> str:
    return f"{value:.4f}"
