"""Tool calls in the admin: pending decisions, approving and denying, and the audit events."""

import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import Text, about, linked, noted, of_conversation, shortened, state
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.tool_answers import Reply
from sessions_app.admin.words import VIA_WORDS, Words, worded
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, moment
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ApprovalEvent, ApprovalEventKind, ToolCallRecord
from tools_app.services import Actor

CALL_WORDS: dict[str, tuple[str, Text]] = {
    CallStatus.WAITING: ("pending", _("Waits for the page")),
    CallStatus.ASKED: ("asked", _("Waits for a decision")),
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

_DECISIONS = (ApprovalEventKind.APPROVED, ApprovalEventKind.DENIED)


class EventInline(ReadOnlyInline):
    """Audit events of a call's approval."""

    template = "admin/think_sessions/read_only_inline.html"
    model = ApprovalEvent
    fields = ("kind", "actor", "came", "reason", "created_at", "input_hash")
    readonly_fields = fields
    ordering = ("pk",)

    @admin.display(description=_("via"))
    def came(self, row: ApprovalEvent) -> str:
        """The way that it came."""
        return worded(row.via, CAME_WORDS)


class CallStatusFilter(admin.SimpleListFilter):
    """Calls by their status, in the words of the list."""

    title = _("state")
    parameter_name = "status"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return all words."""
        return [(status.value, CALL_WORDS[status][1]) for status in CallStatus]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        return queryset.filter(status=self.value()) if self.value() in set(CallStatus) else queryset


class ToolCallAdmin(ActionAdmin):
    """Calls, newest first. Staff who may change calls may also decide pending approvals."""

    list_display = ("title", "conversation", "owner", "standing", "decided", "called")
    list_filter = (CallStatusFilter, "created_at")
    list_select_related = ("owner",)
    search_fields = ("=call_id", "=turn_id", "=scope", "=tool_name")
    search_help_text = _("The exact id of a call, turn or conversation, or the name of a tool.")
    ordering = ("-pk",)
    inlines = (EventInline,)
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
        """Add the conversation, and who decided last."""
        rows: QuerySet[ToolCallRecord] = super().get_queryset(request)
        decisions = ApprovalEvent.objects.filter(call=OuterRef("pk"), kind__in=_DECISIONS).order_by("-pk")
        by = f"actor__{get_user_model().USERNAME_FIELD}"
        return rows.annotate(
            **of_conversation("scope"),
            decision=Subquery(decisions.values("kind")[:1]),
            decided_by=Subquery(decisions.values(by)[:1]),
            decided_via=Subquery(decisions.values("via")[:1]),
        )

    @admin.display(description=_("tool"), ordering="tool_name")
    def title(self, row: ToolCallRecord) -> str:
        """The name of the tool, and how its arguments begin."""
        return noted(row.tool_name, shortened(dump(row.input), 60))

    @override
    def page_title(self, row: ToolCallRecord) -> str:
        """The tool, and the conversation."""
        return str(_("%(tool)s in “%(title)s”")) % {
            "tool": row.tool_name,
            "title": about(row, reads=vars(row)["reads"]),
        }

    @admin.display(description=_("conversation"))
    def conversation(self, row: ToolCallRecord) -> str:
        """Link to the conversation."""
        found = vars(row)
        return linked("think_chat_agentinstance", found["about_id"], about(row, reads=found["reads"]))

    @admin.display(description=_("state"), ordering="status")
    def standing(self, row: ToolCallRecord) -> str:
        """The status, in words."""
        return state(*CALL_WORDS[row.status])

    @admin.display(description=_("decided by"))
    def decided(self, row: ToolCallRecord) -> str:
        """The person who approved or denied it, or how it came."""
        found = vars(row)
        if found["decision"] is None:
            return NOTHING
        return str(found["decided_by"] or worded(found["decided_via"], CAME_WORDS))

    @admin.display(description=_("arguments"))
    def whole_input(self, row: ToolCallRecord) -> str:
        """All of them."""
        return block(row.input)

    @admin.display(description=_("result"))
    def whole_output(self, row: ToolCallRecord) -> str:
        """All of it."""
        return NOTHING if row.settled_at is None else block(row.output)

    @admin.display(description=_("called"), ordering="created_at")
    def called(self, row: ToolCallRecord) -> str:
        """When it was called, and how long it ran."""
        took = str(_("took %(time)s")) % {"time": self.took(row)} if row.settled_at is not None else ""
        return noted(moment(row.created_at), took)

    @admin.display(description=_("took"), ordering="duration_ms")
    def took(self, row: ToolCallRecord) -> str:
        """Seconds that it ran."""
        return NOTHING if row.settled_at is None else str(_("%(seconds).1f s")) % {"seconds": row.duration_ms / 1000}

    @admin.display(description=_("turn"))
    def turn(self, row: ToolCallRecord) -> str:
        """Link to the turn."""
        return linked("think_chat_turn", row.turn_id, row.turn_id)

    @admin.action(description=_("Approve"), permissions=["manage"])
    def approve(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord]) -> None:
        """Approve the selected calls that wait for it."""
        self._decide(request, queryset, approved=True)

    @admin.action(description=_("Deny"), permissions=["manage"])
    def deny(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord]) -> None:
        """Deny the selected calls that wait for it."""
        self._decide(request, queryset, approved=False)

    def _decide(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord], *, approved: bool) -> None:
        chosen = list(queryset)
        done = 0
        for row in chosen:
            try:
                done += _decide_one(row, request.user.pk, approved=approved)
            except ThinkError as error:
                self.message_user(request, f"{row.tool_name}: {error.message}", messages.ERROR)
        text = _("%(done)d of %(all)d approved.") if approved else _("%(done)d of %(all)d denied.")
        self.message_user(request, str(text) % {"done": done, "all": len(chosen)}, messages.SUCCESS)


def _decide_one(row: ToolCallRecord, user_id: Any, *, approved: bool) -> bool:
    instance = AgentInstance.objects.filter(pk=row.scope).first()
    if instance is None or not row.approval_id:
        return False
    reply = Reply(call_id=row.call_id, is_approved=approved, reason="" if approved else "Denied by staff.")
    return reply_to_call(key_of(instance), reply, Actor(user_id=user_id, via="admin")).is_new


def block(value: Any) -> str:
    """A value as its own lines: JSON indented, text as it is."""
    shown = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    shown = shown.encode(errors="replace").decode()  # a lone surrogate has no UTF-8
    return format_html('<pre class="think-block" tabindex="0">{}</pre>', shown)
