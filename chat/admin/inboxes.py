"""Messages between agents in the admin: who said what to whom, what waits; to send one, and to pause an agent."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.base import ActionAdmin, AgentFilter
from chat.admin.columns import agent_title, linked, shortened, state, title_of
from chat.agent.registry import list_agents
from chat.instances.rows import find_instance, key_of
from chat.models import AgentInstance, AgentMessage
from chat.turns.inbox.pausing import go_on, pause
from chat.turns.inbox.sending import Letter, member_of, room_of, send
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.read_only_admin import NOTHING, choice_filter, column, moment

if TYPE_CHECKING:
    _Form = forms.ModelForm[AgentMessage]
else:
    _Form = forms.ModelForm


InboxFilter = choice_filter(
    _("state"),
    "state",
    {
        "waiting": (_("Waits"), Q(processed_at=None, turn=None)),
        "taken": (_("Is being answered"), Q(processed_at=None, turn__isnull=False)),
        "processed": (_("Processed"), Q(processed_at__isnull=False)),
    },
)


class TargetFilter(AgentFilter):
    """By the agent whose inbox it is."""

    title = _("to")
    column = "target"


class AgentMessageForm(_Form):
    """A message to an agent of a room, which it answers."""

    room = forms.CharField(label=_("Room"), help_text=_("The id of a conversation: its agent, or others in it."))
    target = forms.ChoiceField(label=_("To"))
    text = forms.CharField(label=_("Text"), widget=forms.Textarea)

    class Meta:
        model = AgentMessage
        fields = ("room", "target")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "target" in self.fields:
            self.fields["target"] = forms.ChoiceField(
                label=_("To"), choices=[(info.name, info.title) for info in list_agents()]
            )

    def clean_room(self) -> AgentInstance:
        """Find the conversation."""
        room = AgentInstance.objects.filter(pk=self.cleaned_data["room"].strip()).first()
        if room is None:
            raise ValidationError(_("There is no such conversation."))
        return room

    def clean(self) -> dict[str, Any]:
        """Send the message: what is refused is said on the form."""
        given: dict[str, Any] = super().clean() or {}
        if {"room", "target", "text"} <= given.keys() and not self.errors:
            try:
                letter = Letter(target=given["target"], content=given["text"])
                self.sent = send(room_of(key_of(given["room"])), letter)
            except ThinkError as error:
                raise ValidationError(error.message) from error
        return given


@admin.register(AgentMessage)
class AgentMessageAdmin(ActionAdmin):
    """Messages between agents, newest first."""

    form = AgentMessageForm
    list_display = ("who", "what", "standing", "room_link", "sent")
    list_filter = (InboxFilter, TargetFilter, "role", "late")
    list_select_related = ("room",)
    search_fields = ("=room__id", "=request_id", "=in_reply_to", "=turn__id", "=asked_in__id")
    search_help_text = _("The exact id of a room, a request or a turn.")
    ordering = ("-seq",)
    actions = ("pause_agents", "let_agents_go_on")
    fieldsets = (
        (None, {"fields": ("who", "text", "standing", "room_link", "sent", "turn_link")}),
        (
            _("Ids and options"),
            {
                "classes": ("collapse",),
                "fields": ("seq", "role", "request_id", "in_reply_to", "call_chain", "asked_in_link", "processed_at"),
            },
        ),
    )

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("think_chat.add_agentmessage")

    @override
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return ((None, {"fields": ("room", "target", "text")}),) if obj is None else super().get_fieldsets(request, obj)

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else super().get_readonly_fields(request, obj)

    @override
    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"room": request.GET.get("room", "")}

    @override
    def save_form(self, request: HttpRequest, form: Any, change: bool) -> AgentMessage:
        sent: AgentMessage = form.sent
        return sent

    @override
    def save_model(self, request: HttpRequest, obj: AgentMessage, form: Any, change: bool) -> None:
        """Nothing is left to do."""

    @override
    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing hangs on it."""

    @override
    def page_title(self, row: Any) -> str:
        return f"{_name(row.sender)} → {_name(row.target)}"

    @admin.display(description=_("message"))
    def who(self, row: AgentMessage) -> str:
        """The sender and the agent that it is for."""
        return self.page_title(row)

    what = column(_("text"), lambda row: shortened(row.content, 40) if row.reads else NOTHING)
    text = column(_("text"), lambda row: str(row.content) if row.reads else NOTHING)

    @admin.display(description=_("state"))
    def standing(self, row: AgentMessage) -> str:
        """The state in words."""
        if row.role == "system":
            return state("error", _("Failed"))
        if row.processed_at is not None:
            return state("completed", _("Processed"), str(_("late")) if row.late else "")
        return state("pending", _("Waits")) if row.turn_id is None else state("running", _("Is being answered"))

    room_link = column(
        _("room"),
        lambda row: linked("think_chat_agentinstance", row.room_id, shortened(title_of(row.room, reads=row.reads), 40)),
    )
    sent = column(_("sent"), lambda row: moment(row.created_at), ordering="seq")
    turn_link = column(
        _("turn"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id) if row.turn_id else NOTHING
    )
    asked_in_link = column(
        _("sent by"),
        lambda row: linked("think_chat_turn", row.asked_in_id, row.asked_in_id) if row.asked_in_id else NOTHING,
    )

    @admin.action(description=_("Pause the agents that these are for"), permissions=["manage"])
    def pause_agents(self, request: HttpRequest, rows: QuerySet[AgentMessage]) -> None:
        """Let no further turn of theirs begin."""
        count = _at_targets(rows, pause)
        text = ngettext("%(count)d agent was paused.", "%(count)d agents were paused.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)

    @admin.action(description=_("Let the agents that these are for go on"), permissions=["manage"])
    def let_agents_go_on(self, request: HttpRequest, rows: QuerySet[AgentMessage]) -> None:
        """End their pauses."""
        count = _at_targets(rows, go_on)
        text = ngettext("%(count)d agent goes on.", "%(count)d agents go on.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)


def _name(route: str) -> str:
    return agent_title(route) if route else str(_("People"))


def _at_targets(rows: QuerySet[AgentMessage], act: Callable[[AgentInstance], bool]) -> int:
    """Do something with each agent that messages are for, once; how often it changed anything."""
    places = {(row.room_id, row.target): row.room for row in rows.select_related("room") if row.target}
    found = (find_instance(member_of(key_of(room), target)) for (_room, target), room in places.items())
    return sum(act(instance) for instance in found if instance is not None)
