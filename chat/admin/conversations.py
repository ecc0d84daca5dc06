"""Conversations, turns, tokens and files in the admin: to look at, to stop, to run again, to prune. Nothing is edited.

Lists never count a whole table. What people wrote is seen by those who may view turns; secrets are not stored.
"""

import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

import sessions_app.admin.sessions  # noqa: F401 - registers first what is registered anew below
from chat.access import api_tokens
from chat.admin.base import ActionAdmin, link_to
from chat.admin.instances import AgentInstanceAdmin
from chat.admin.tool_calls import ToolCallAdmin
from chat.conversations import compactions
from chat.files import attachments
from chat.models import AgentInstance, ApiToken, Attachment, StreamSegment, Turn
from chat.reads.provider_requests import ProviderRequest, provider_requests
from chat.streams.logs.database_log import prune_segments
from chat.turns.admission.admission import cancel_turn
from chat.turns.state.status import SKIPPED_REASON, TurnStatus, fiber_statuses, turn_status
from fibers.admin import waits_text
from fibers.models import FiberStep
from fibers.services import requeue_fiber
from sessions_app.admin.context import CompactionAdmin
from sessions_app.compactions.services import Author
from sessions_app.models import Compaction
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.models import ToolCallRecord


class TellingCompactionAdmin(CompactionAdmin):
    """Summaries. The open pages of a conversation are notified of a change."""

    @override
    def reword(self, row: Compaction, summary: str, author: Author) -> None:
        """Store a summary's new text."""
        instance = _conversation_of(row)
        if instance is None:
            super().reword(row, summary, author)
        else:
            compactions.reword(instance, row.pk, summary, user_id=author.user_id, via=author.via)

    @override
    def take_back(self, row: Compaction, author: Author) -> None:
        """Undo a compaction."""
        instance = _conversation_of(row)
        if instance is None:
            super().take_back(row, author)
        else:
            compactions.undo(instance, row.pk, user_id=author.user_id, via=author.via)


admin.site.unregister(Compaction)  # registered by the app below, which knows of no conversations
admin.site.register(Compaction, TellingCompactionAdmin)
admin.site.register(AgentInstance, AgentInstanceAdmin)
admin.site.register(ToolCallRecord, ToolCallAdmin)  # deciding about a call is the chat's business


class ClaimedFilter(admin.SimpleListFilter):
    """Files that a message refers to, or not."""

    title = "claimed"
    parameter_name = "claimed"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return both."""
        return [("1", "by a message"), ("0", "not at all")]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        return queryset if self.value() is None else queryset.filter(claimed_at__isnull=self.value() == "0")


class StatusFilter(admin.SimpleListFilter):
    """Turns by their status, in the words of the list."""

    title = "status"
    parameter_name = "status"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return all words."""
        return [(status.value, status.value) for status in TurnStatus]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        if self.value() not in set(TurnStatus):
            return queryset
        status = TurnStatus(str(self.value()))
        rows = queryset.filter(fiber__status__in=fiber_statuses(status))
        if status is TurnStatus.SKIPPED:
            return rows.filter(fiber__reason=SKIPPED_REASON)
        return rows.exclude(fiber__reason=SKIPPED_REASON) if status is TurnStatus.ABORTED else rows


@admin.register(Turn)
class TurnAdmin(ActionAdmin):
    """Turns: status, cost, and the exact request of each step."""

    list_display = (
        *("id", "instance", "status", "trigger", "model_name", "input_tokens", "output_tokens", "cost", "step_count"),
        *("accepted_at", "duration", "error_code"),
    )
    list_filter = (StatusFilter, "trigger", "accepted_at")
    list_select_related = ("instance", "fiber")
    search_fields = ("=id", "=request_id", "=instance__id", "=assistant_id")
    search_help_text = "The exact id of a turn, a request, a conversation or an answer."
    ordering = ("-id",)  # ids sort by time
    fields = (
        *("id", "instance_link", "conversation", "fiber_link", "status", "waits", "attempts"),
        *("trigger", "position"),
        *("request_id", "idempotency_key", "parent", "input_ids", "base_id", "base_is_explicit", "assistant_id"),
        *("model_name", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cost", "step_count"),
        *("accepted_at", "started_at", "finished_at", "duration", "error_code", "error_text", "body", "options"),
        *("requests", "journal"),
    )
    actions = ("cancel_turns", "requeue_turns")

    @admin.display(description="status", ordering="fiber__status")
    def status(self, turn: Turn) -> str:
        """The fiber's status, in the words of the API."""
        return turn_status(turn.fiber.status, turn.fiber.reason).value

    @admin.display(description="waits for")
    def waits(self, turn: Turn) -> str:
        """The waits of a parked turn, each with its start."""
        return waits_text(turn.fiber)

    @admin.display(description="duration")
    def duration(self, turn: Turn) -> str:
        """Seconds from start to end."""
        if turn.started_at is None or turn.finished_at is None:
            return "-"
        return f"{(turn.finished_at - turn.started_at).total_seconds():.1f} s"

    @admin.display(description="attempts")
    def attempts(self, turn: Turn) -> str:
        """Number of attempts by workers."""
        fiber = turn.fiber
        return f"{fiber.attempt} (retries {fiber.retries}, recoveries {fiber.recoveries}), reason {fiber.reason or '-'}"

    @admin.display(description="conversation")
    def conversation(self, turn: Turn) -> str:
        """Link to the session."""
        return link_to("think_sessions_session", turn.session_id)

    @admin.display(description="instance")
    def instance_link(self, turn: Turn) -> str:
        """Link to the instance."""
        return link_to("think_chat_agentinstance", turn.instance_id)

    @admin.display(description="fiber")
    def fiber_link(self, turn: Turn) -> str:
        """Link to the fiber."""
        return link_to("think_fibers_fiber", turn.fiber_id)

    @admin.display(description="requests to the model")
    def requests(self, turn: Turn) -> str:
        """The requests sent to the provider, step by step, without credentials."""
        found = provider_requests(_steps(turn).values_list("step_key", "value"))
        return _folds((_request_title(request), request.body) for request in found)

    @admin.display(description="journal")
    def journal(self, turn: Turn) -> str:
        """Settled steps, without their requests."""
        return _folds((f"{step.step_key} · attempt {step.attempt}", _without_request(step)) for step in _steps(turn))

    @admin.action(description="Stop", permissions=["manage"])
    def cancel_turns(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        """Stop the selected turns that have not ended. Their partial answers are kept."""
        chosen = list(queryset.values_list("pk", flat=True))
        done = sum(cancel_turn(pk) for pk in chosen)
        self.message_user(request, f"{done} of {len(chosen)} stopped.", messages.SUCCESS)

    @admin.action(description="Run again", permissions=["manage"])
    def requeue_turns(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        """Run the selected turns again that failed or were interrupted, over their journals."""
        chosen = list(queryset.values_list("fiber_id", flat=True))
        done = sum(requeue_fiber(pk) for pk in chosen)
        self.message_user(request, f"{done} of {len(chosen)} are waiting to run again.", messages.SUCCESS)


@admin.register(ApiToken)
class ApiTokenAdmin(ActionAdmin):
    """Tokens by name and prefix; the secret is nowhere."""

    list_display = ("name", "user", "prefix", "created_at", "used_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("=prefix", "^name", f"=user__{get_user_model().USERNAME_FIELD}")
    fields = list_display
    ordering = ("-id",)
    actions = ("revoke_tokens",)

    @admin.action(description="Revoke", permissions=["manage"])
    def revoke_tokens(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """End the selected tokens for good."""
        chosen = list(queryset.values_list("pk", flat=True))
        done = sum(api_tokens.revoke_token(pk) for pk in chosen)
        self.message_user(request, f"{done} of {len(chosen)} revoked.", messages.SUCCESS)


@admin.register(Attachment)
class AttachmentAdmin(ActionAdmin):
    """Files, by size and owner; their bytes are served to their owners alone."""

    list_display = ("id", "name", "owner", "media_type", "byte_size", "created_at", "claimed_at")
    list_filter = (ClaimedFilter, "created_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=sha256", "^name", f"=owner__{get_user_model().USERNAME_FIELD}")
    fields = (*list_display, "sha256", "storage_name", "instance")
    ordering = ("-id",)
    actions = ("delete_files",)

    @admin.action(description="Delete with their bytes", permissions=["remove"])
    def delete_files(self, request: HttpRequest, queryset: QuerySet[Attachment]) -> None:
        """Delete the selected files."""
        chosen = list(queryset)
        for row in chosen:
            attachments.delete_attachment(row)
        self.message_user(request, f"{len(chosen)} deleted.", messages.SUCCESS)


@admin.register(StreamSegment)
class StreamSegmentAdmin(ActionAdmin):
    """Records of the cold log, largest first."""

    list_display = ("stream", "first_offset", "last_offset", "size", "created_at")
    list_filter = ("created_at",)
    search_fields = ("=stream",)
    fields = ("stream", "first_offset", "last_offset", "size", "created_at", "data")
    ordering = ("-id",)
    actions = ("prune_old",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[StreamSegment]:
        """Sizes come from the database; the chunks themselves are read in the detail only."""
        rows: QuerySet[StreamSegment] = super().get_queryset(request)
        return rows.annotate(size_chars=Length("data")).defer("data")

    @admin.display(description="characters", ordering="size_chars")
    def size(self, row: StreamSegment) -> int:
        """Length of the data."""
        return int(getattr(row, "size_chars", 0))

    @admin.action(
        description="Prune what is past its retention (the selection does not matter)", permissions=["remove"]
    )
    def prune_old(self, request: HttpRequest, queryset: QuerySet[StreamSegment]) -> None:  # noqa: ARG002 - policy decides
        """Remove segments of turns that ended long enough ago."""
        self.message_user(request, f"{prune_segments()} removed.", messages.SUCCESS)


def _conversation_of(row: Compaction) -> AgentInstance | None:
    return AgentInstance.objects.filter(pk=row.session.scope).first()


def _steps(turn: Turn) -> QuerySet[FiberStep]:
    return FiberStep.objects.filter(fiber_id=turn.fiber_id).order_by("pk")


def _without_request(step: FiberStep) -> JSONValue:
    value = step.value
    return {key: item for key, item in value.items() if key != "request"} if isinstance(value, dict) else value


def _request_title(request: ProviderRequest) -> str:
    note = "" if request.is_exact else " · incomplete: the hash differs"
    return f"{request.step_key} · {request.body.get('model', '')}{note}"


def _folds(items: Any) -> SafeString | str:
    rows = [(title, json.dumps(value, indent=2, ensure_ascii=True)) for title, value in items]
    if not rows:
        return "-"
    return format_html_join("", "<details><summary>{}</summary><pre>{}</pre></details>", rows)
