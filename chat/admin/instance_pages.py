"""Pages besides a conversation's own: pruning by a rule, what takes space, the configuration, the state."""

import json
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.ability_forms import JsonText
from chat.admin.base import PageAdmin
from chat.admin.columns import Text, reads_messages, title_of
from chat.admin.schema_form import SchemaForm, has_form
from chat.agent.registry import is_served
from chat.conversations.pruning import MAX_DAYS, MAX_PLANNED, PruneRule, plan_pruning, prune_conversations
from chat.errors import ConfigChanged, ConfigInvalid, InputInvalid, StateOutdated, StateRefused
from chat.instance.instance import make_agent
from chat.instances.config import ConfigView, save_config, view_config
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.operations.table_sizes import database_size
from chat.runtime.state import change_state

_USERNAME = get_user_model().USERNAME_FIELD
Save = Callable[[AgentInstance, Any, int], None]


class PruneForm(forms.Form):
    """A rule by which conversations go."""

    days = forms.IntegerField(label=_("Not active for (days)"), required=False, min_value=0, max_value=MAX_DAYS)
    keep = forms.IntegerField(label=_("Not among the newest of their owner (count)"), required=False, min_value=0)
    owner = forms.CharField(label=_("Of this person (user name)"), required=False, max_length=200)
    include_all = forms.BooleanField(label=_("Also those that are not archived"), required=False)

    def clean_owner(self) -> Any:
        """Find the person."""
        name = self.cleaned_data["owner"]
        found = get_user_model()._default_manager.filter(**{_USERNAME: name}).first() if name else None
        if name and found is None:
            raise forms.ValidationError(_("There is no user of this name."))
        return found

    @override
    def clean(self) -> dict[str, Any]:
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


class ValueForm(forms.Form):
    """A value of a conversation as JSON, over the version that was shown."""

    value = JsonText(label=_("JSON"), rows=20, max_length=2_000_000)
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


def _store(form: "ValueForm | SchemaForm", instance: AgentInstance, save: Save) -> bool:
    """Store it; false, with an error in the form, when it does not fit or was changed meanwhile."""
    value = form.value if isinstance(form, SchemaForm) else form.cleaned_data["value"]
    try:
        save(instance, value, form.cleaned_data["version"])
    except (ConfigInvalid, StateRefused) as error:
        form.add_error("value", error.message)
    except (ConfigChanged, StateOutdated) as error:
        again = str(_("Reload the page, then make your change again."))
        form.add_error(None, f"{error.message} {again}")
    return not form.errors


def _save_config(instance: AgentInstance, value: Any, version: int) -> None:
    save_config(key_of(instance), value, version=version)


def _save_state(instance: AgentInstance, value: Any, version: int) -> None:
    async_to_sync(change_state)(make_agent(key_of(instance)), value, "server", version=version)


class InstancePages:
    """The views, for the admin of conversations."""

    def __init__(self, admin: PageAdmin) -> None:
        self.admin = admin

    def urls(self) -> list[URLPattern]:
        """Their addresses."""
        wrap, name = self.admin.admin_site.admin_view, "think_chat_agentinstance"
        return [
            path("prune/", wrap(self.prune_view), name=f"{name}_prune"),
            path("storage/", wrap(self.storage_view), name=f"{name}_storage"),
            path("<str:instance_id>/config/", wrap(self.config_view), name=f"{name}_config"),
            path("<str:instance_id>/state/", wrap(self.state_view), name=f"{name}_state"),
        ]

    def prune_view(self, request: HttpRequest) -> HttpResponse:
        """Preview a pruning rule (GET), then delete the previewed conversations that still match it (POST)."""
        if not self.admin.has_view_permission(request) or not self.admin.has_remove_permission(request):
            raise PermissionDenied
        given = request.POST or request.GET
        form = PruneForm(given or None)
        if not form.is_bound or not form.is_valid():
            return self.admin.page(request, "prune", title=_("Prune conversations"), form=form)
        rule, now = form.cleaned_data["rule"], timezone.now()
        if request.method == "POST":
            removed = prune_conversations(rule, now, request.POST.getlist("id")[:MAX_PLANNED])
            text = ngettext("%(count)d conversation was removed.", "%(count)d conversations were removed.", removed)
            self.admin.message_user(request, text % {"count": removed}, messages.SUCCESS)
            return HttpResponseRedirect(f"{request.path}?{request.GET.urlencode()}")
        plan = plan_pruning(rule, now)
        return self.admin.page(request, "prune", title=_("Prune conversations"), form=form, plan=plan)

    def storage_view(self, request: HttpRequest) -> HttpResponse:
        """Show the size of each table in bytes."""
        if not self.admin.has_view_permission(request):
            raise PermissionDenied
        return self.admin.page(request, "storage", title=_("Storage"), size=database_size())

    def config_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Show a configuration, and store a new one if the class accepts it."""
        instance = self._instance(request, instance_id)
        view = view_config(instance)
        has_fields = has_form(view.config_schema) and "json" not in request.GET
        form = _fields(request, view) if has_fields else _form(request, view.config, view.version)
        if form.is_bound and form.is_valid() and _store(form, instance, _save_config):
            return self._stored(request, instance, _("Configuration changed."), _("The configuration was changed."))
        schema = None if view.config_schema is None else json.dumps(view.config_schema, indent=2)
        shown = title_of(instance, reads=reads_messages(request))
        title = str(_("Configuration of %(title)s")) % {"title": shown}
        context = {"title": title, "what": _("Configuration"), "instance": instance, "instance_title": shown}
        if has_fields:
            return self.admin.page(request, "config", form=form, button=_("Save"), **context)
        return self.admin.page(request, "value", form=form, schema=schema, takes_any=schema is None, **context)

    def state_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Show the synced state, and store a new one if the agent accepts it. Open pages get it at once."""
        instance = self._instance(request, instance_id)
        if not is_served(instance.agent):
            raise Http404
        form = _form(request, async_to_sync(make_agent(key_of(instance)).get_state)(), instance.state_version)
        if form.is_bound and form.is_valid() and _store(form, instance, _save_state):
            return self._stored(request, instance, _("State changed."), _("The state was changed."))
        shown = title_of(instance, reads=reads_messages(request))
        title = str(_("State of %(title)s")) % {"title": shown}
        context = {"title": title, "what": _("State"), "instance": instance, "instance_title": shown}
        return self.admin.page(request, "value", form=form, **context)

    def _instance(self, request: HttpRequest, instance_id: str) -> AgentInstance:
        instance: AgentInstance | None = self.admin.get_object(request, instance_id)
        if not self.admin.has_view_permission(request) or not self.admin.has_manage_permission(request):
            raise PermissionDenied
        if instance is None:
            raise Http404
        return instance

    def _stored(self, request: HttpRequest, instance: AgentInstance, noted: Text, said: Text) -> HttpResponse:
        self.admin.log_change(request, instance, str(noted))
        self.admin.message_user(request, str(said), messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:think_chat_agentinstance_change", args=[instance.pk]))


def _form(request: HttpRequest, value: Any, version: int) -> ValueForm:
    initial = {"value": json.dumps(value, indent=2, ensure_ascii=False), "version": version}
    return ValueForm(request.POST if request.method == "POST" else None, initial=initial)


def _fields(request: HttpRequest, view: ConfigView) -> SchemaForm:
    posted = request.POST if request.method == "POST" else None
    return SchemaForm(posted, schema=view.config_schema or {}, value=view.config, version=view.version)
