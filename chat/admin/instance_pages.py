"""Pages besides a conversation's own: pruning by a rule, what takes space, the configuration."""

import json
from typing import Any

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

from chat.admin.base import PageAdmin
from chat.admin.columns import reads_messages, title_of
from chat.conversations.pruning import MAX_DAYS, MAX_PLANNED, PruneRule, plan_pruning, prune_conversations
from chat.errors import ConfigChanged, ConfigInvalid, InputInvalid
from chat.instances.config import ConfigView, save_config, view_config
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.operations.table_sizes import database_size

_USERNAME = get_user_model().USERNAME_FIELD


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
        label=_("Configuration (JSON)"),
        widget=forms.Textarea(attrs={"rows": 20, "cols": 80, "spellcheck": "false", "class": "vLargeTextField"}),
        max_length=2_000_000,
    )
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def clean_config(self) -> Any:
        """Decode it."""
        try:
            return json.loads(self.cleaned_data["config"])
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(_("This is no JSON: %(error)s"), params={"error": error}) from error

    def store(self, instance: AgentInstance) -> bool:
        """Store it; false, with an error in the form, when it does not fit or was changed meanwhile."""
        try:
            save_config(key_of(instance), self.cleaned_data["config"], version=self.cleaned_data["version"])
        except ConfigInvalid as error:
            self.add_error("config", error.message)
        except ConfigChanged as error:
            again = str(_("Reload the page, then make your change again."))
            self.add_error(None, f"{error.message} {again}")
        return not self.errors


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
        instance = self.admin.get_object(request, instance_id)
        if not self.admin.has_view_permission(request) or not self.admin.has_manage_permission(request):
            raise PermissionDenied
        if instance is None:
            raise Http404
        view = view_config(instance)
        form = ConfigForm(request.POST if request.method == "POST" else None, initial=_initial(view))
        if form.is_bound and form.is_valid() and form.store(instance):
            self.admin.log_change(request, instance, str(_("Configuration changed.")))
            self.admin.message_user(request, _("The configuration was changed."), messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:think_chat_agentinstance_change", args=[instance.pk]))
        schema = None if view.config_schema is None else json.dumps(view.config_schema, indent=2)
        title = str(_("Configuration of %(title)s")) % {"title": title_of(instance, reads=reads_messages(request))}
        named = {"instance": instance, "instance_title": title_of(instance, reads=reads_messages(request))}
        return self.admin.page(request, "config", title=title, form=form, schema=schema, **named)


def _initial(view: ConfigView) -> dict[str, Any]:
    return {"config": json.dumps(view.config, indent=2, ensure_ascii=False), "version": view.version}
