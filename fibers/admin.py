"""Fibers in the admin: to look at, to cancel, to run again. Nothing is edited here: the runner owns the rows."""

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import localtime
from typing_extensions import override

from fibers import registry, services
from fibers.core.states import FiberStatus
from fibers.models import Fiber, FiberStep
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin, ReadOnlyInline


class NameFilter(admin.SimpleListFilter):
    """By durable function. Choices come from the registry, not from a DISTINCT over the table."""

    title = "name"
    parameter_name = "name"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the names that this process knows."""
        return [(entry.name, entry.name) for entry in registry.durables()]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> QuerySet[Fiber]:
        """Keep the chosen name."""
        return queryset if self.value() is None else queryset.filter(name=self.value())


class StepInline(ReadOnlyInline):
    """The journal of a fiber."""

    model = FiberStep
    fields = ("step_key", "attempt", "created_at", "value")
    readonly_fields = fields
    ordering = ("pk",)


def waits_text(fiber: Fiber) -> str:
    """The waits of a parked fiber, each with its start."""
    if fiber.status != FiberStatus.PARKED:
        return "-"
    return "; ".join(map(_wait_text, fiber.waits)) or "-"


def _wait_text(wait: JSONObject) -> str:
    text: str = wait.get("label") or wait["kind"]
    if not wait.get("since"):
        return text
    return f"{text}, since {date_format(localtime(datetime.fromisoformat(wait['since'])), 'DATETIME_FORMAT')}"


@admin.register(Fiber)
class FiberAdmin(ReadOnlyAdmin):
    """List and detail of fibers, read-only, with two actions."""

    list_display = (
        "id",
        "name",
        "status",
        "reason",
        "waits_for",
        "lane",
        "attempt",
        "retries",
        "recoveries",
        "worker",
        "lease_until",
        "created_at",
        "finished_at",
    )
    list_filter = ("status", NameFilter)
    search_fields = ("=id", "=lane", "=key")
    search_help_text = "The exact id, lane or key."
    ordering = ("-id",)  # ids sort by time
    readonly_fields = ("waits_for",)
    inlines = (StepInline,)
    actions = ("cancel_fibers", "requeue_fibers")

    @admin.display(description="waits for")
    def waits_for(self, fiber: Fiber) -> str:
        """The waits of a parked fiber, each with its start."""
        return waits_text(fiber)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether this person may cancel fibers."""
        return request.user.has_perm("think_fibers.cancel_fiber")

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Whether this person may run fibers again."""
        return request.user.has_perm("think_fibers.requeue_fiber")

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel_fibers(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> None:
        """Cancel the selected fibers that have not ended."""
        chosen = queryset.values_list("pk", flat=True)
        done = sum(services.cancel_fiber(pk, reason="cancelled_by_staff") for pk in chosen)
        self.message_user(request, f"{done} of {len(chosen)} cancelled.", messages.SUCCESS)

    @admin.action(description="Run again", permissions=["requeue"])
    def requeue_fibers(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> None:
        """Run the selected fibers again that failed or were interrupted."""
        chosen = queryset.values_list("pk", flat=True)
        done = sum(services.requeue_fiber(pk) for pk in chosen)
        self.message_user(request, f"{done} of {len(chosen)} are waiting to run again.", messages.SUCCESS)
