"""Actions of staff on a conversation's page: edit and add messages, ask again, choose the shown branch.

Each needs Django's permission for it, is checked again on POST, goes through the services, and is logged.
"""

from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import PageAdmin
from chat.admin.columns import ASKED_AGAIN, title_of
from chat.admin.conversation_page import Rights, rights_of
from chat.conversations.staff_edits import (
    ask_again,
    choose_branch,
    edit_problem,
    editable_texts,
    reword_message,
    write_message,
)
from chat.models import AgentInstance
from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.messages import selectors
from thinkproject.kernel.errors import ThinkError

MAX_CHARS: Final = 1_000_000
MAX_TEXTS: Final = 50


def _text_field(label: Any, **options: Any) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 10, "class": "vLargeTextField"})
    return forms.CharField(label=label, widget=area, max_length=MAX_CHARS, strip=False, **options)


class EditForm(forms.Form):
    """The texts of a message, and what follows from the change."""

    session = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def __init__(self, message: StoredMessage, *args: Any, can_run: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        texts = editable_texts(message)[:MAX_TEXTS]
        for number, text in enumerate(texts):
            label = _("Text") if len(texts) == 1 else str(_("Text %(number)d")) % {"number": number + 1}
            self.fields[f"text_{number}"] = _text_field(label, required=False, initial=text)
        if message.role == MessageRole.ASSISTANT:
            label = _("Go on from this version; the conversation shows it from now on")
            self.fields["shows"] = forms.BooleanField(label=label, required=False, initial=True)
        elif message.role == MessageRole.USER and can_run:
            label = _("Have it answered; this asks the model")
            self.fields["answers"] = forms.BooleanField(label=label, required=False)

    def texts(self) -> list[str]:
        """The texts that the person wrote, in order."""
        names = [name for name in self.fields if name.startswith("text_")]
        return [self.cleaned_data[name] for name in sorted(names, key=lambda name: int(name.removeprefix("text_")))]


class AddForm(forms.Form):
    """A message of either side."""

    session = forms.CharField(widget=forms.HiddenInput, max_length=64)
    after = forms.CharField(widget=forms.HiddenInput, max_length=128, required=False)
    role = forms.ChoiceField(label=_("Said by"), widget=forms.RadioSelect)
    text = _text_field(_("Text"))
    answers = forms.BooleanField(label=_("Have it answered; this asks the model"), required=False)

    def __init__(self, *args: Any, speakers: list[tuple[str, Any]], can_run: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role = self.fields["role"]
        assert isinstance(role, forms.ChoiceField)
        role.choices = speakers
        if not can_run:
            del self.fields["answers"]

    @override
    def clean(self) -> dict[str, Any]:
        """Refuse to ask for an answer to an answer."""
        data = super().clean() or {}
        if data.get("answers") and data.get("role") == MessageRole.ASSISTANT:
            self.add_error("answers", _("Only a person's message can be answered."))
        return data


class ConversationActions:
    """The views, for the admin of conversations."""

    def __init__(self, admin: PageAdmin) -> None:
        self.admin = admin

    def urls(self) -> list[URLPattern]:
        """Their addresses."""
        wrap, name = self.admin.admin_site.admin_view, "think_chat_agentinstance"
        return [
            path("<str:instance_id>/edit-message/", wrap(self.edit_view), name=f"{name}_edit_message"),
            path("<str:instance_id>/add-message/", wrap(self.add_view), name=f"{name}_add_message"),
            path("<str:instance_id>/branch/", wrap(self.branch_view), name=f"{name}_branch"),
            path("<str:instance_id>/ask-again/", wrap(self.ask_view), name=f"{name}_ask_again"),
        ]

    def edit_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Edit a message: a new version beside it."""
        instance, rights = self._opened(request, instance_id, "edits")
        message = selectors.get_message(instance.session_id or "", request.GET.get("message", "")[:128])
        if message is None:
            raise Http404
        initial = {"session": instance.session_id}
        data = request.POST if request.method == "POST" else None
        form = EditForm(message, data, initial=initial, can_run=rights.runs)
        if form.is_bound and form.is_valid():
            given = {name: form.cleaned_data[name] for name in ("answers", "shows") if name in form.fields}
            try:
                made = reword_message(
                    instance,
                    message.id,
                    form.texts(),
                    session_id=form.cleaned_data["session"],
                    user_id=request.user.pk,
                    **given,
                )
            except ThinkError as error:
                form.add_error(None, error.message)
            else:
                self._log(request, instance, _("Edited message %(old)s; the new version is %(new)s."), message.id, made)
                return self._back(request, instance, made, _("The new version stands beside the old one."))
        context = {"form": form, "instance": instance, "problem": edit_problem(message), "message_role": message.role}
        context["instance_title"] = title_of(instance, reads=True)
        return self.admin.page(request, "edit_message", title=_("Edit a message"), **context)

    def add_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Add a message at the end of what is shown, or below another one."""
        instance, rights = self._opened(request, instance_id, "adds")
        owner = _("Person") if instance.owner is None else instance.owner.get_username()
        speakers = [(MessageRole.USER.value, owner), (MessageRole.ASSISTANT.value, _("The agent"))]
        initial = {
            "session": instance.session_id,
            "after": request.GET.get("after", "")[:128],
            "role": MessageRole.USER.value,
        }
        data = request.POST if request.method == "POST" else None
        form = AddForm(data, initial=initial, speakers=speakers, can_run=rights.runs)
        if form.is_bound and form.is_valid():
            try:
                made = write_message(
                    instance,
                    form.cleaned_data["role"],
                    form.cleaned_data["text"],
                    session_id=form.cleaned_data["session"],
                    user_id=request.user.pk,
                    after_id=form.cleaned_data["after"],
                    answers=form.cleaned_data.get("answers", False),
                )
            except ThinkError as error:
                form.add_error(None, error.message)
            else:
                self._log(request, instance, _("Added message %(new)s."), "", made)
                return self._back(request, instance, made, _("The message was added."))
        after = selectors.get_message(instance.session_id or "", initial["after"]) if initial["after"] else None
        context = {"form": form, "instance": instance, "after": after, "instance_title": title_of(instance, reads=True)}
        return self.admin.page(request, "add_message", title=_("Add a message"), **context)

    def branch_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Make a branch the shown one (POST)."""
        instance, _rights = self._opened(request, instance_id, "branches")
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        message_id = request.POST.get("message", "")[:128]
        try:
            choose_branch(instance, message_id, session_id=request.POST.get("session", ""))
        except ThinkError as error:
            return self._refused(request, instance, error)
        self._log(request, instance, _("Showed the branch of message %(new)s."), "", message_id)
        return self._back(request, instance, message_id, _("The conversation shows this branch now."))

    def ask_view(self, request: HttpRequest, instance_id: str) -> HttpResponse:
        """Have a question answered once more (POST)."""
        instance, _rights = self._opened(request, instance_id, "runs")
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        message_id = request.POST.get("message", "")[:128]
        try:
            turn = ask_again(instance, message_id, session_id=request.POST.get("session", ""), user_id=request.user.pk)
        except ThinkError as error:
            return self._refused(request, instance, error)
        text = _("Asked again for another answer than %(old)s: turn %(new)s.")
        self._log(request, instance, text, message_id, turn.pk)
        return self._back(request, instance, "", ASKED_AGAIN)

    def _opened(self, request: HttpRequest, instance_id: str, right: str) -> tuple[AgentInstance, Rights]:
        rights = rights_of(request)
        if not self.admin.has_view_permission(request) or not getattr(rights, right):
            raise PermissionDenied
        instance = AgentInstance.objects.select_related("owner").filter(pk=instance_id).first()
        if instance is None:
            raise Http404
        return instance, rights

    def _log(self, request: HttpRequest, instance: AgentInstance, text: Any, old: str, new: str) -> None:
        self.admin.log_change(request, instance, str(text) % {"old": old, "new": new})

    def _refused(self, request: HttpRequest, instance: AgentInstance, error: ThinkError) -> HttpResponse:
        self.admin.message_user(request, error.message, messages.ERROR)
        return HttpResponseRedirect(reverse("admin:think_chat_agentinstance_change", args=[instance.pk]))

    def _back(self, request: HttpRequest, instance: AgentInstance, message_id: str, text: Any) -> HttpResponse:
        self.admin.message_user(request, text, messages.SUCCESS)
        url = reverse("admin:think_chat_agentinstance_change", args=[instance.pk])
        query = urlencode({"at": message_id}) if message_id else ""
        return HttpResponseRedirect(f"{url}?{query}#message-{message_id}" if query else url)
