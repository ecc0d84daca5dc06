"""Tool calls in the admin: pending decisions, approving and denying, and the audit events."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import ASKED, CONVERSATION, Text, about, linked, noted, of_conversation, shortened, state
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.tool_answers import Reply
from sessions_app.admin.words import VIA_WORDS, Words, worded
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, block, choice_filter, column, moment
from tools_app.calls.services import Actor
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ApprovalEvent, ApprovalEventKind, ToolCallRecord

CALL_WORDS: dict[str, tuple[str, Text]] = {
    CallStatus.WAITING: ("pending", _("Waits for the page")),
    CallStatus.ASKED: ("asked", ASKED),
    CallStatus.APPROVED: ("running", _("Approved")),
    CallStatus.EARLY: ("running", _("Answered early")),
    CallStatus.RUNNING: ("running", _("Running")),
    CallStatus.SUCCEEDED: ("completed", _("Done")),
    CallStatus.FAILED: ("error", _("Failed")),
    CallStatus.DENIED: ("aborted", _("Denied")),
}
"""Colour and words of each status."""

CAME_WORDS: Words = {
    **VIA_WORDS,
    "socket": _("The page"),
    "post": _("A program, by HTTP"),
    "server": _("Code"),
    "turn": _("The turn"),
    "clear": _("Clearing the conversation"),
}
"""The ways that a decision comes."""

_PAGE = "think_tools_toolcallrecord"
_DECISIONS = (ApprovalEventKind.APPROVED, ApprovalEventKind.DENIED)


class EventInline(ReadOnlyInline):
    """Audit events of a call's approval."""

    template = "admin/think_sessions/read_only_inline.html"
    model = ApprovalEvent
    fields = ("kind", "actor", "came", "reason", "created_at", "input_hash")
    readonly_fields = fields
    ordering = ("pk",)

    came = column(_("via"), lambda row: worded(row.via, CAME_WORDS))


CallStatusFilter = choice_filter(
    _("state"), "status", {each: (CALL_WORDS[each][1], Q(status=each)) for each in CallStatus}
)


class ToolCallAdmin(ActionAdmin):
    """Calls, newest first. Staff who may change calls may also decide pending approvals."""

    list_display = ("title", "conversation", "owner", "standing", "decided", "called")
    list_filter = (CallStatusFilter, "created_at")
    list_select_related = ("owner",)
    search_fields = ("=call_id", "=turn_id", "=tool_name")
    search_help_text = _("The exact id of a call, turn or conversation, or the name of a tool.")
    ordering = ("-pk",)
    inlines = (EventInline,)
    change_form_template = "admin/think_tools/toolcallrecord/change_form.html"
    fieldsets = (
        (
            None,
            {"fields": ("tool_name", "conversation", "owner", "standing", "decided", "called", "took", "expires_at")},
        ),
        (_("Arguments and result"), {"fields": ("whole_input", "whole_output")}),
        (
            _("Ids"),
            {
                "classes": ("collapse",),
                "fields": ("call_id", "turn", "approval_id", "attempt", "continues", "settled_at"),
            },
        ),
    )
    actions = ("approve", "deny")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolCallRecord]:
        rows: QuerySet[ToolCallRecord] = super().get_queryset(request)
        decisions = ApprovalEvent.objects.filter(call=OuterRef("pk"), kind__in=_DECISIONS).order_by("-pk")
        by = f"actor__{get_user_model().USERNAME_FIELD}"
        return rows.annotate(
            **of_conversation("scope", Turn.objects.filter(pk=OuterRef("turn_id"))),
            decision=Subquery(decisions.values("kind")[:1]),
            decided_by=Subquery(decisions.values(by)[:1]),
            decided_via=Subquery(decisions.values("via")[:1]),
        )

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ToolCallRecord], search_term: str
    ) -> tuple[QuerySet[ToolCallRecord], bool]:
        """Find the calls of a conversation, too. Most name their turn alone; those that wait also name their scope."""
        if not AgentInstance.objects.filter(pk=search_term).exists():
            return super().get_search_results(request, queryset, search_term)
        turns = Turn.objects.filter(instance=search_term).values("pk")
        return queryset.filter(Q(turn_id__in=turns) | Q(scope=search_term)), False

    title = column(_("tool"), lambda row: noted(row.tool_name, shortened(dump(row.input), 60)), ordering="tool_name")

    @override
    def page_title(self, row: ToolCallRecord) -> str:
        return str(_("%(tool)s in “%(title)s”")) % {
            "tool": row.tool_name,
            "title": about(row, reads=vars(row)["reads"]),
        }

    conversation = CONVERSATION
    standing = column(_("state"), lambda row: state(*CALL_WORDS[row.status]), ordering="status")

    @admin.display(description=_("decided by"))
    def decided(self, row: ToolCallRecord) -> str:
        """The person who approved or denied it, or how it came."""
        found = vars(row)
        if found["decision"] is None:
            return NOTHING
        return str(found["decided_by"] or worded(found["decided_via"], CAME_WORDS))

    whole_input = column(_("arguments"), lambda row: block(row.input))
    whole_output = column(_("result"), lambda row: NOTHING if row.settled_at is None else block(row.output))

    @admin.display(description=_("called"), ordering="created_at")
    def called(self, row: ToolCallRecord) -> str:
        """When it was called, and how long it ran."""
        took = str(_("took %(time)s")) % {"time": self.took(row)} if row.settled_at is not None else ""
        return noted(moment(row.created_at), took)

    took = column(
        _("took"),
        lambda row: (
            NOTHING if row.settled_at is None else str(_("%(seconds).1f s")) % {"seconds": row.duration_ms / 1000}
        ),
        ordering="duration_ms",
    )
    turn = column(_("turn"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id))

    @admin.action(description=_("Approve"), permissions=["manage"])
    def approve(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord]) -> None:
        """Approve the selected calls that wait for it."""
        self._decide(request, queryset, approved=True)

    @admin.action(description=_("Deny"), permissions=["manage"])
    def deny(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord]) -> None:
        """Deny the selected calls that wait for it."""
        self._decide(request, queryset, approved=False)

    def _decide(self, request: HttpRequest, rows: Iterable[ToolCallRecord], *, approved: bool) -> None:
        chosen = list(rows)
        done = 0
        for row in chosen:
            try:
                done += _decide_one(row, request.user.pk, approved=approved)
            except ThinkError as error:
                self.message_user(request, f"{row.tool_name}: {error.message}", messages.ERROR)
        text = _("%(done)d of %(all)d approved.") if approved else _("%(done)d of %(all)d denied.")
        self.message_user(request, str(text) % {"done": done, "all": len(chosen)}, messages.SUCCESS)

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act_view)
        return [path("<int:row_id>/act/", view, name="think_tools_toolcallrecord_act"), *super().get_urls()]

    def act_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        """Allow or decline a call that waits for a decision (POST)."""
        if not self.has_view_permission(request) or not self.has_manage_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.get_queryset(request).filter(pk=row_id).first()
        do = request.POST.get("do", "")
        if row is None or do not in {"approve", "deny"}:
            raise Http404
        self._decide(request, [row], approved=do == "approve")
        about_id = vars(row)["about_id"]
        view, key = ("think_chat_agentinstance", about_id) if "back" in request.POST and about_id else (_PAGE, row.pk)
        return HttpResponseRedirect(reverse(f"admin:{view}_change", args=[key]))

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the buttons of a call that waits for a decision."""
        row = self.get_object(request, unquote(object_id))
        waits = row is not None and row.status == CallStatus.ASKED and self.has_manage_permission(request)
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "can_decide": waits})


def _decide_one(row: ToolCallRecord, user_id: Any, *, approved: bool) -> bool:
    instance = AgentInstance.objects.filter(pk=row.scope).first()
    if instance is None or not row.approval_id:
        return False
    reply = Reply(call_id=row.call_id, is_approved=approved, reason="" if approved else "Denied by staff.")
    return reply_to_call(key_of(instance), reply, Actor(user_id=user_id, via="admin")).is_new
