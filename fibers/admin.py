"""Fibers in the admin: to look at, to cancel, to run again. Nothing is edited here: the runner owns the rows."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from typing_extensions import override

from fibers import registry, services
from fibers.models import Fiber, FiberStep

if TYPE_CHECKING:
    _FiberAdmin = admin.ModelAdmin[Fiber]
    _StepInline = admin.TabularInline[FiberStep, Fiber]
else:
    _FiberAdmin = admin.ModelAdmin
    _StepInline = admin.TabularInline

COUNT_LIMIT = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time in Django 5.2
    """Counts up to a limit: COUNT over a large table costs seconds on PostgreSQL."""

    @cached_property
    def count(self) -> int:
        """Rows, at most the limit."""
        rows = self.object_list
        return rows.order_by()[:COUNT_LIMIT].count() if isinstance(rows, QuerySet) else len(rows)


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


class StepInline(_StepInline):
    """The journal of a fiber."""

    model = FiberStep
    fields = ("step_key", "attempt", "created_at", "value")
    readonly_fields = fields
    ordering = ("pk",)
    extra = 0
    can_delete = False

    @override
    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody adds steps by hand."""
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody edits steps by hand."""
        return False


@admin.register(Fiber)
class FiberAdmin(_FiberAdmin):
    """List and detail of fibers, read-only, with two actions."""

    list_display = (
        "id",
        "name",
        "status",
        "reason",
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
    inlines = (StepInline,)
    actions = ("cancel_fibers", "requeue_fibers")
    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        """Fibers are started by services."""
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Fibers are moved by the runner."""
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Fibers are pruned by policy."""
        return False

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
