"""Pages on which staff have an agent do something: call a method, start a run, open an agent below, use files.

Each does what an operation of the API does for the owner, through the same function, within the owner's limits. It
takes Django's permission for it, is checked again on POST, and is logged at the conversation.
"""

import json
from typing import Any, Final

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from chat.admin.ability_forms import CallForm, NewScheduleForm, RunForm, SubAgentForm, WorkspaceForm, errors_in, posted
from chat.admin.base import PageAdmin
from chat.admin.columns import Text, reads_messages, title_of
from chat.agent.registry import get_agent_class, is_served
from chat.conversations import abilities
from chat.errors import InstanceNotFound
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.reads.declarations import Declarations, declarations
from chat.schedules.editing import make_schedule, read_timing
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate
from tools_app.models import WorkspaceAttachment

_NAME: Final = "think_chat_agentinstance"
PAGES: Final[dict[str, tuple[Text, str]]] = {
    "call": (_("Call a method"), "think_chat.change_agentinstance"),
    "run": (_("Have another agent work for it"), "think_chat.add_agentrun"),
    "sub_agent": (_("Open a sub-agent"), "think_chat.add_agentinstance"),
    "schedule": (_("Make a schedule"), "think_fibers.add_schedule"),
    "workspaces": (_("Workspaces that it may use"), "think_tools.add_workspaceattachment"),
    "skills": (_("Skills"), "think_chat.view_agentinstance"),
}
"""Title of each page, and the permission that it takes."""


def ability_links(request: HttpRequest, instance_id: str, declared: Declarations) -> list[tuple[str, Text]]:
    """Addresses and titles of the pages that this person may open for a conversation. `declared`: by its class."""
    return [
        (reverse(f"admin:{_NAME}_{name}", args=[instance_id]), title)
        for name, (title, permission) in PAGES.items()
        if request.user.has_perm(permission) and _applies(name, declared)
    ]


def _applies(name: str, declared: Declarations) -> bool:
    if name in ("run", "sub_agent"):
        return bool(declared.sub_agents)
    return bool(declared.methods) if name == "call" else declared.chats or name != "skills"


class AbilityPages:
    """The views, for the admin of conversations."""

    def __init__(self, admin: PageAdmin) -> None:
        self.admin = admin

    def urls(self) -> list[URLPattern]:
        """Their addresses."""
        wrap = self.admin.admin_site.admin_view
        views = {
            "call": self.call_view,
            "run": self.run_view,
            "sub_agent": self.sub_agent_view,
            "schedule": self.schedule_view,
            "workspaces": self.workspaces_view,
            "skills": self.skills_view,
        }
        return [
            path(f"<str:instance_id>/{name.replace('_', '-')}/", wrap(view), name=f"{_NAME}_{name}")
            for name, view in views.items()
        ]

    def call_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Call a method that its class offers to clients, and show the result."""
        instance, declared = self._opened(request, instance_id, "call")
        form, result = CallForm(posted(request), methods=declared.methods), None
        if form.is_bound and form.is_valid():
            method = form.cleaned_data["method"]
            self._log(request, instance, _("Called the method %(name)s."), method)
            with errors_in(form):
                found = async_to_sync(abilities.call_method)(key_of(instance), method, form.cleaned_data["arguments"])
                shown = found.result if found.items is None else {"items": found.items, "result": found.result}
                result = json.dumps(shown, indent=2, ensure_ascii=False)
        note = _("The agent's code runs at once. What it gives back stands below.")
        return self._page(request, instance, "call", form, note=note, button=_("Call"), result=result)

    def run_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Have another agent work for the conversation."""
        instance, declared = self._opened(request, instance_id, "run")
        form = RunForm(posted(request), agents=declared.sub_agents)
        if form.is_bound and form.is_valid():
            with errors_in(form):
                run = abilities.begin_run(instance, form.cleaned_data["agent"], form.cleaned_data["task"])
                self._log(request, instance, _("Started the run %(name)s."), run.pk)
                if run.outcome is None:
                    return self._back(request, instance, _("The run has begun."))
                form.add_error(None, str(run.outcome.get("error", "")))
        note = _("It counts as a message of the owner's, and works in a conversation of its own below this one.")
        return self._page(request, instance, "run", form, note=note, button=_("Start"))

    def sub_agent_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Open a sub-agent."""
        instance, declared = self._opened(request, instance_id, "sub_agent")
        form = SubAgentForm(posted(request), agents=declared.sub_agents)
        if form.is_bound and form.is_valid():
            with errors_in(form):
                child = abilities.open_sub_agent(instance, form.cleaned_data["agent"], form.cleaned_data["name"])
                self._log(request, instance, _("Opened the sub-agent %(name)s."), child.pk)
                return self._back(request, instance, _("The sub-agent is open."))
        note = _("One of this agent and name that is there already stays as it is.")
        return self._page(request, instance, "sub_agent", form, note=note, button=_("Open"))

    def schedule_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Have the conversation asked a prompt, or a method run, at times to come."""
        instance, declared = self._opened(request, instance_id, "schedule")
        form = NewScheduleForm(posted(request), methods=declared.methods)
        if form.is_bound and form.is_valid():
            given = form.cleaned_data
            with errors_in(form):
                made = make_schedule(
                    instance,
                    read_timing(given["kind"], given["spec"], given["zone"]),
                    title=given["title"],
                    prompt=given["prompt"] or None,
                    method=given["method"] or None,
                    arguments=given["arguments"],
                )
                self._log(request, instance, _("Made the schedule %(name)s."), made.pk)
                return self._back(request, instance, _("The schedule is there."))
        return self._page(request, instance, "schedule", form, note=TIMES_NOTE, button=_("Make"))

    def workspaces_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """List the workspaces that the agent may open; attach one, or end the use of one."""
        instance, _declared = self._opened(request, instance_id, "workspaces")
        ends = request.user.has_perm("think_tools.delete_workspaceattachment")
        name = request.POST.get("end", "")
        form = WorkspaceForm(None if name else posted(request))
        if name:
            if not ends:
                raise PermissionDenied
            try:
                abilities.end_workspace_use(instance, name)
            except ThinkError as error:
                self.admin.message_user(request, translate(error.phrase), messages.ERROR)
                return HttpResponseRedirect(request.path)
            self._log(request, instance, _("Ended the use of the workspace %(name)s."), name)
            return self._back(request, instance, _("It may not use the workspace any more."))
        if form.is_bound and form.is_valid():
            given = form.cleaned_data
            with errors_in(form):
                other = given["workspace"] or _of_same_owner(instance, given["conversation"])
                abilities.use_workspace(instance, given["name"], other, can_write=given["can_write"])
                self._log(request, instance, _("Let it use the workspace %(name)s."), given["name"])
                return self._back(request, instance, _("It may use the workspace."))
        used = WorkspaceAttachment.objects.filter(scope=instance.pk).order_by("name")
        note = _("Only workspaces of the same owner, and those that are shared, can be used.")
        more = {"used": used, "ends": ends, "note": note, "button": _("Attach")}
        return self._page(request, instance, "workspaces", form, **more)

    def skills_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """List the skills that the agent has, as its code says."""
        instance, _declared = self._opened(request, instance_id, "skills")
        try:
            skills = async_to_sync(abilities.skills_for)(key_of(instance))
        except ThinkError as error:
            self.admin.message_user(request, translate(error.phrase), messages.ERROR)
            skills = []
        return self._page(request, instance, "skills", None, skills=skills)

    def _opened(self, request: HttpRequest, instance_id: str, name: str) -> tuple[AgentInstance, Declarations]:
        if not self.admin.has_view_permission(request) or not request.user.has_perm(PAGES[name][1]):
            raise PermissionDenied
        instance = AgentInstance.objects.filter(pk=instance_id).first()
        if instance is None or not is_served(instance.agent):
            raise Http404
        declared = declarations(get_agent_class(instance.agent))
        if not _applies(name, declared):
            raise Http404
        return instance, declared

    def _page(
        self, request: HttpRequest, instance: AgentInstance, name: str, form: forms.Form | None, **more: Any
    ) -> HttpResponse:
        shown = title_of(instance, reads=reads_messages(request))
        context = {"form": form, "instance": instance, "instance_title": shown, "title": PAGES[name][0], **more}
        template = name if name in ("workspaces", "skills") else "ability"
        return self.admin.page(request, template, **context)

    def _log(self, request: HttpRequest, instance: AgentInstance, text: Text, name: str) -> None:
        self.admin.log_change(request, instance, str(text) % {"name": name})

    def _back(self, request: HttpRequest, instance: AgentInstance, text: Text) -> HttpResponse:
        self.admin.message_user(request, str(text), messages.SUCCESS)
        return HttpResponseRedirect(reverse(f"admin:{_NAME}_change", args=[instance.pk]))


TIMES_NOTE: Final = _(
    "Times are seconds (after a delay, every so often), a date and time (at an instant), or the five fields of cron "
    "(at wall-clock times), which need a time zone."
)


def _of_same_owner(instance: AgentInstance, other_id: str) -> AgentInstance:
    found = AgentInstance.objects.filter(pk=other_id, owner_id=instance.owner_id).first()
    if found is None:
        raise InstanceNotFound
    return found
