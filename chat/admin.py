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
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

from chat import attachments, instances, registry, tokens
from chat.admin_calls import ToolCallAdmin
from chat.models import AgentInstance, ApiToken, Attachment, StreamSegment, Turn
from chat.provider_requests import ProviderRequest, provider_requests
from chat.streams.cold import prune_segments
from chat.turns.admission import cancel_turn
from chat.turns.status import turn_status
from fibers.models import FiberStep
from fibers.services import requeue_fiber
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin
from tools_app.models import ToolCallRecord

admin.site.register(ToolCallRecord, ToolCallAdmin)  # deciding about a call is the chat's business


class ActionAdmin(ReadOnlyAdmin):
    """With two permissions for actions: Django's own change and delete permission."""

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the actions: Django's own change permission."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the actions that remove: Django's own delete permission."""
        return request.user.has_perm(f"{self.opts.app_label}.delete_{self.opts.model_name}")


class AgentFilter(admin.SimpleListFilter):
    """By agent. Choices come from the registry, not from a DISTINCT over the table."""

    title = "agent"
    parameter_name = "agent"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the agents that are served."""
        return [(info.name, info.title) for info in registry.list_agents()]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen agent."""
        return queryset if self.value() is None else queryset.filter(agent=self.value())


class ClaimedFilter(admin.SimpleListFilter):
    """Files that a message refers to, or not."""

    title = "claimed"
    parameter_name = "claimed"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return both."""
        return [("1", "by a message"), ("0", "by nobody")]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        return queryset if self.value() is None else queryset.filter(claimed_at__isnull=self.value() == "0")


@admin.register(AgentInstance)
class AgentInstanceAdmin(ActionAdmin):
    """Conversations, with links to what is in them."""

    list_display = ("id", "owner", "agent", "name", "title", "turn_count", "active_at", "conversation")
    list_filter = (AgentFilter, "active_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=name", "^title", f"=owner__{get_user_model().USERNAME_FIELD}")
    search_help_text = "The exact id, name or owner, or how the title begins."
    ordering = ("-active_at", "id")
    fields = (
        *("id", "owner", "parent", "agent", "name", "title", "conversation", "turns", "turn_count", "generation"),
        *("created_at", "active_at", "seen_at", "archived_at", "state", "state_version"),
    )
    actions = ("delete_conversations",)

    @admin.display(description="conversation")
    def conversation(self, row: AgentInstance) -> str:
        """Link to the current session."""
        return _link("think_sessions_session", row.session_id)

    @admin.display(description="turns")
    def turns(self, row: AgentInstance) -> str:
        """Link to the turns."""
        url = reverse("admin:think_chat_turn_changelist")
        return format_html('<a href="{}?instance__id__exact={}">turns</a>', url, row.pk)

    @admin.action(description="Delete with everything in it", permissions=["remove"])
    def delete_conversations(self, request: HttpRequest, queryset: QuerySet[AgentInstance]) -> None:
        """Delete the selected conversations."""
        chosen = list(queryset)
        for row in chosen:
            instances.delete_instance(row)
        self.message_user(request, f"{len(chosen)} deleted.", messages.SUCCESS)


@admin.register(Turn)
class TurnAdmin(ActionAdmin):
    """Turns: how they went, what they cost, and exactly what the model was asked in each step."""

    list_display = (
        *("id", "instance", "status", "trigger", "model_name", "input_tokens", "output_tokens", "step_count"),
        *("accepted_at", "duration", "error_code"),
    )
    list_filter = ("fiber__status", "trigger", "accepted_at")
    list_select_related = ("instance", "fiber")
    search_fields = ("=id", "=request_id", "=instance__id", "=assistant_id")
    search_help_text = "The exact id of a turn, a request, a conversation or an answer."
    ordering = ("-id",)  # ids sort by time
    fields = (
        *("id", "instance_link", "conversation", "fiber_link", "status", "attempts", "trigger", "position"),
        *("request_id", "idempotency_key", "parent", "input_ids", "base_id", "base_is_explicit", "assistant_id"),
        *("model_name", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "step_count"),
        *("accepted_at", "started_at", "finished_at", "duration", "error_code", "error_text", "body", "options"),
        *("requests", "journal"),
    )
    actions = ("cancel_turns", "requeue_turns")

    @admin.display(description="status", ordering="fiber__status")
    def status(self, turn: Turn) -> str:
        """The fiber's status, in the words of the API."""
        return turn_status(turn.fiber.status, turn.fiber.reason).value

    @admin.display(description="duration")
    def duration(self, turn: Turn) -> str:
        """Seconds from start to end."""
        if turn.started_at is None or turn.finished_at is None:
            return "-"
        return f"{(turn.finished_at - turn.started_at).total_seconds():.1f} s"

    @admin.display(description="attempts")
    def attempts(self, turn: Turn) -> str:
        """How often a worker took it."""
        fiber = turn.fiber
        return f"{fiber.attempt} (retries {fiber.retries}, recoveries {fiber.recoveries}), reason {fiber.reason or '-'}"

    @admin.display(description="conversation")
    def conversation(self, turn: Turn) -> str:
        """Link to the session."""
        return _link("think_sessions_session", turn.session_id)

    @admin.display(description="instance")
    def instance_link(self, turn: Turn) -> str:
        """Link to the instance."""
        return _link("think_chat_agentinstance", turn.instance_id)

    @admin.display(description="fiber")
    def fiber_link(self, turn: Turn) -> str:
        """Link to the fiber."""
        return _link("think_fibers_fiber", turn.fiber_id)

    @admin.display(description="requests to the model")
    def requests(self, turn: Turn) -> str:
        """What the provider was sent, step by step, without credentials."""
        found = provider_requests(_steps(turn).values_list("step_key", "value"))
        return _folds((_request_title(request), request.body) for request in found)

    @admin.display(description="journal")
    def journal(self, turn: Turn) -> str:
        """Settled steps, without their requests."""
        return _folds((f"{step.step_key} · attempt {step.attempt}", _without_request(step)) for step in _steps(turn))

    @admin.action(description="Stop", permissions=["manage"])
    def cancel_turns(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        """Stop the selected turns that have not ended; what they said stays."""
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
        done = sum(tokens.revoke_token(pk) for pk in chosen)
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
    """The cold log by size: what takes space."""

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


def _link(view: str, key: str | None) -> str:
    if key is None:
        return "-"
    try:
        url = reverse(f"admin:{view}_change", args=[key])
    except NoReverseMatch:
        return key  # that app has no admin here
    return format_html('<a href="{}">{}</a>', url, key)


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
