"""Tool calls in the admin: pending decisions, approving and denying, and the audit events."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.tool_answers import Reply
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin, ReadOnlyInline
from tools_app.models import ApprovalEvent, ToolCallRecord
from tools_app.services import Actor


class EventInline(ReadOnlyInline):
    """Audit events of a call's approval."""

    model = ApprovalEvent
    fields = ("kind", "actor", "via", "reason", "created_at", "input_hash")
    readonly_fields = fields
    ordering = ("pk",)


class ToolCallAdmin(ReadOnlyAdmin):
    """Calls, newest first. Staff who may change calls may also decide pending approvals."""

    list_display = ("call_id", "tool_name", "status", "owner", "input", "created_at", "expires_at", "settled_at")
    list_filter = ("status",)
    list_select_related = ("owner",)
    search_fields = ("=call_id", "=turn_id", "=scope", "=tool_name")
    search_help_text = "The exact id of a call, turn or conversation, or the name of a tool."
    ordering = ("-pk",)
    inlines = (EventInline,)
    actions = ("approve", "deny")

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """Whether this person may decide: Django's own change permission."""
        return request.user.has_perm("think_tools.change_toolcallrecord")

    @admin.action(description="Approve", permissions=["manage"])
    def approve(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord]) -> None:
        """Approve the selected calls that wait for it."""
        self._decide(request, queryset, approved=True)

    @admin.action(description="Deny", permissions=["manage"])
    def deny(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord]) -> None:
        """Deny the selected calls that wait for it."""
        self._decide(request, queryset, approved=False)

    def _decide(self, request: HttpRequest, queryset: QuerySet[ToolCallRecord], *, approved: bool) -> None:
        chosen = list(queryset)
        done = sum(_decide_one(row, request.user.pk, approved=approved) for row in chosen)
        word = "approved" if approved else "denied"
        self.message_user(request, f"{done} of {len(chosen)} {word}.", messages.SUCCESS)


def _decide_one(row: ToolCallRecord, user_id: Any, *, approved: bool) -> bool:
    instance = AgentInstance.objects.filter(pk=row.scope).first()
    if instance is None or not row.approval_id:
        return False
    reply = Reply(call_id=row.call_id, is_approved=approved, reason="" if approved else "Denied by staff.")
    return reply_to_call(key_of(instance), reply, Actor(user_id=user_id, via="admin")).is_new
