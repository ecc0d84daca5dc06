"""Fibers in the admin: to look at, to cancel, to run again. Nothing is edited here: the runner owns the rows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from fibers import registry, services
from fibers.core.budget import Exhausted
from fibers.core.states import HALTED, METHOD_MISSING, UNKNOWN_DURABLE, WORKER_LOST, FiberStatus
from fibers.effects.registered import FAMILY, find_effect
from fibers.execution.recovery import LAPSED
from fibers.models import EffectEntry, EffectState, Fiber, FiberStep, RunnerCheckpoint, ServedFunction
from fibers.waits import RESUMED
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.read_only_admin import (
    NOTHING,
    ReadOnlyAdmin,
    ReadOnlyInline,
    choice_filter,
    column,
    moment,
    moment_text,
)

STATUS_WORDS = {
    FiberStatus.PENDING: _("Waiting"),
    FiberStatus.RUNNING: _("Running"),
    FiberStatus.PARKED: _("Parked"),
    FiberStatus.COMPLETED: _("Completed"),
    FiberStatus.FAILED: _("Failed"),
    FiberStatus.CANCELLED: _("Stopped"),
    FiberStatus.INTERRUPTED: _("Given up"),
}
REASON_WORDS: Mapping[str, str | Promise] = {
    "retry": _("tries again"),
    "requeued": _("run again"),
    "shutdown": _("its worker shut down"),
    RESUMED: _("its answer has come"),
    LAPSED: _("not taken up again in time"),
    "cancelled": _("by code"),
    "cancelled_by_staff": _("by staff"),
    Exhausted.ATTEMPTS: _("its workers were lost too often"),
    Exhausted.NO_PROGRESS: _("no progress for too long"),
    WORKER_LOST: _("its worker was lost"),
    UNKNOWN_DURABLE: _("no worker has its function now; it goes on when one has"),
    METHOD_MISSING: _("no worker has its method now; it goes on when one has"),
    "resolved": _("ended by hand"),
    HALTED: _("what it belongs to was deleted meanwhile; it can run again"),
}
"""Why a fiber stands where it does. Codes of errors are shown as they are."""


StatusFilter = choice_filter(
    _("state"), "status", {each: (word, Q(status=each)) for each, word in STATUS_WORDS.items()}
)


class NameFilter(admin.SimpleListFilter):
    """By durable function. Choices come from the registry, not from a DISTINCT over the table."""

    title = _("work")
    parameter_name = "name"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(entry.name, entry.name) for entry in registry.durables()]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> QuerySet[Fiber]:
        chosen = self.value()
        if chosen is None:
            return queryset
        return queryset.filter(Q(name=chosen) | Q(name__startswith=f"{chosen}:"))  # itself, or one of its family


class StepInline(ReadOnlyInline):
    """The journal of a fiber."""

    model = FiberStep
    fields = ("step_key", "attempt", "created_at", "value")
    readonly_fields = fields
    ordering = ("pk",)


def waits_text(fiber: Fiber) -> str:
    """The waits of a parked fiber, each with its start."""
    if fiber.status != FiberStatus.PARKED:
        return NOTHING
    return "; ".join(map(_wait_text, fiber.waits)) or NOTHING


def _wait_text(wait: JSONObject) -> str:
    text: str = wait.get("label") or wait["kind"]
    if not wait.get("since"):
        return text
    since = moment_text(datetime.fromisoformat(wait["since"]))
    return str(_("%(what)s, since %(since)s")) % {"what": text, "since": since}


@admin.register(RunnerCheckpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    """The places of runners in their sources."""

    list_display = ("runner", "source", "cursor", "updated_at")
    search_fields = ("=runner", "=source")
    search_help_text = _("The exact runner or source.")
    ordering = ("runner", "source")


@admin.register(ServedFunction)
class ServedFunctionAdmin(ReadOnlyAdmin):
    """Functions of executors: when one was last there, and what it last did."""

    list_display = ("name", "kind", "seen_at", "queue", "waiting", "under_way", "last_ended")
    list_filter = ("kind",)
    search_fields = ("name",)
    ordering = ("name", "kind")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ServedFunction]:
        """Look at the calls in the same query."""
        calls = Fiber.objects.filter(name=OuterRef("name")).order_by()
        counted = calls.values("name").annotate(n=Count("pk")).values("n")
        last = calls.filter(finished_at__isnull=False).order_by("-finished_at")
        served: QuerySet[ServedFunction] = super().get_queryset(request)
        return served.annotate(
            pending=Subquery(counted.filter(status=FiberStatus.PENDING)),
            running=Subquery(counted.filter(status=FiberStatus.RUNNING)),
            **{f"last_{name}": Subquery(last.values(name)[:1]) for name in ("pk", "status", "finished_at")},
        )

    waiting = column(_("waiting"), lambda row: row.pending or 0)
    under_way = column(_("running"), lambda row: row.running or 0)

    @admin.display(description=_("last ended"))
    def last_ended(self, row: Any) -> str:
        """The call that ended last, and how."""
        if row.last_pk is None:
            return NOTHING
        address = reverse("admin:think_fibers_fiber_change", args=[row.last_pk])
        word = STATUS_WORDS[FiberStatus(row.last_status)]
        return format_html('<a href="{}">{}</a><br>{}', address, word, moment(row.last_finished_at))


@admin.register(EffectState)
class EffectStateAdmin(ReadOnlyAdmin):
    """Effects of querysets: how many rows each knows, when it looked, what went wrong."""

    list_display = ("name", "is_here", "rows", "looks", "looked", "due", "error")
    readonly_fields = ("is_here", "rows", "fibers")
    search_fields = ("name",)
    ordering = ("name",)
    actions = ("look_now",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[EffectState]:
        """Count the entries in the same query."""
        entries = EffectEntry.objects.filter(effect=OuterRef("pk")).order_by().values("effect")
        states: QuerySet[EffectState] = super().get_queryset(request)
        return states.annotate(rows=Subquery(entries.annotate(n=Count("pk")).values("n")))

    is_here = column(_("declared here"), lambda state: find_effect(state.name) is not None, boolean=True)

    @admin.display(description=_("rows in it"), ordering="rows")
    def rows(self, state: EffectState) -> int:
        """The rows that it knows."""
        counted: int | None = state.rows  # type: ignore[attr-defined]  # annotated above
        return counted or 0

    looked = column(_("last look"), lambda state: moment(state.looked_at), ordering="looked_at")
    due = column(_("next look"), lambda state: moment(state.due_at), ordering="due_at")

    @admin.display(description=_("its work"))
    def fibers(self, state: EffectState) -> str:
        """A link to what it started."""
        scope = f"{FAMILY}:{state.name}"
        address = f"{reverse('admin:think_fibers_fiber_changelist')}?{urlencode({'q': scope})}"
        return format_html('<a href="{}">{}</a>', address, scope)

    @admin.action(description=_("Look now"), permissions=["look"])
    def look_now(self, request: HttpRequest, chosen: QuerySet[EffectState]) -> None:
        """Let the next sweep look at these."""
        count = EffectState.objects.filter(pk__in=chosen.values("pk")).update(due_at=Now())
        text = ngettext("%(count)d effect is looked at.", "%(count)d effects are looked at.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)

    def has_look_permission(self, request: HttpRequest) -> bool:
        """Whether this person may have effects look."""
        return request.user.has_perm("think_fibers.look_effect")


@admin.register(Fiber)
class FiberAdmin(ReadOnlyAdmin):
    """List and detail of fibers, read-only, with two actions."""

    list_display: tuple[str, ...] = (
        "work",
        "owner",
        "standing",
        "waits_for",
        "tries",
        "created",
        "ended",
        "worker",
        "id",
    )
    list_filter: ClassVar[tuple[Any, ...]] = (StatusFilter, NameFilter, "created_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=lane", "=key", "=scope")
    search_help_text = _("The exact id, lane, key or scope.")
    ordering = ("-id",)  # ids sort by time
    fieldsets: ClassVar[tuple[Any, ...]] = (
        (None, {"fields": ("work", "owner", "standing", "waits_for", "tries", "failure")}),
        (
            _("Times"),
            {"fields": ("created_at", "started_at", "finished_at", "updated_at", "available_at", "parked_until")},
        ),
        (_("Input and result"), {"fields": ("payload", "metadata", "result", "stash")}),
        (
            _("Where it runs"),
            {
                "classes": ("collapse",),
                "fields": (
                    *("id", "name", "scope", "key", "lane", "lane_position", "share", "worker", "lease_until", "fence"),
                    *(
                        "attempt",
                        "retries",
                        "max_retries",
                        "recoveries",
                        "progress",
                        "recovered_progress",
                        "stalled_at",
                    ),
                    *("cancel_requested_at", "resume_requested_at", "dispatched_at"),
                ),
            },
        ),
    )
    readonly_fields: ClassVar[tuple[str, ...]] = ("work", "standing", "waits_for", "tries", "failure")
    inlines: ClassVar[tuple[Any, ...]] = (StepInline,)
    actions = ("cancel_fibers", "requeue_fibers", "complete_fibers", "dismiss_fibers")
    reason_words: Mapping[str, str | Promise] = REASON_WORDS

    work = column(_("work"), lambda fiber: fiber.name, ordering="name")

    @admin.display(description=_("state"), ordering="status")
    def standing(self, fiber: Fiber) -> str:
        """The status in words, and why it stands there."""
        shown = format_html(
            '<span class="think-state think-state-{}">{}</span>', fiber.status, STATUS_WORDS[FiberStatus(fiber.status)]
        )
        if not fiber.reason:
            return shown
        reason = self.reason_words.get(fiber.reason, fiber.reason.replace("_", " "))
        return format_html('{}<br><span class="think-note-small">{}</span>', shown, reason)

    @admin.display(description=_("attempts"), ordering="attempt")
    def tries(self, fiber: Fiber) -> str:
        """The number of attempts, and how many followed an error or a crash."""
        notes = []
        if fiber.retries:
            notes.append(str(_("%(count)d after an error")) % {"count": fiber.retries})
        if fiber.recoveries:
            notes.append(str(_("%(count)d after a crash")) % {"count": fiber.recoveries})
        if not notes:
            return str(fiber.attempt)
        return format_html('{}<br><span class="think-note-small">{}</span>', fiber.attempt, ", ".join(notes))

    @admin.display(description=_("error"))
    def failure(self, fiber: Fiber) -> str:
        """Code and text of its error."""
        error = fiber.error if isinstance(fiber.error, dict) else {}
        return f"{error.get('code', '')}: {error.get('message', '')}" if error else NOTHING

    created = column(_("created"), lambda fiber: moment(fiber.created_at), ordering="created_at")
    ended = column(_("ended"), lambda fiber: moment(fiber.finished_at), ordering="finished_at")
    waits_for = column(_("waits for"), waits_text)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether this person may cancel fibers."""
        return request.user.has_perm("think_fibers.cancel_fiber")

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Whether this person may run fibers again."""
        return request.user.has_perm("think_fibers.requeue_fiber")

    @admin.action(description=_("Stop"), permissions=["cancel"])
    def cancel_fibers(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> None:
        """Cancel the selected fibers that have not ended."""
        chosen = list(queryset)
        done = [fiber for fiber in chosen if services.cancel_fiber(fiber.pk, reason="cancelled_by_staff")]
        for fiber in done:
            self.log_change(request, fiber, str(_("Stopped.")))
        text = _("%(done)d of %(all)d stopped.")
        self.message_user(request, str(text) % {"done": len(done), "all": len(chosen)}, messages.SUCCESS)

    @admin.action(description=_("Run again where it broke off"), permissions=["requeue"])
    def requeue_fibers(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> None:
        """Run the selected fibers again that failed or were interrupted."""
        chosen = list(queryset)
        done = [fiber for fiber in chosen if services.requeue_fiber(fiber.pk)]
        for fiber in done:
            self.log_change(request, fiber, str(_("Run again.")))
        text = _("%(done)d of %(all)d are waiting to run again.")
        self.message_user(request, str(text) % {"done": len(done), "all": len(chosen)}, messages.SUCCESS)

    @admin.action(description=_("Mark given up ones as completed"), permissions=["requeue"])
    def complete_fibers(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> None:
        """Resolve the selected interrupted fibers as completed."""
        self._resolve(request, queryset, FiberStatus.COMPLETED)

    @admin.action(description=_("Mark given up ones as stopped"), permissions=["cancel"])
    def dismiss_fibers(self, request: HttpRequest, queryset: QuerySet[Fiber]) -> None:
        """Resolve the selected interrupted fibers as cancelled."""
        self._resolve(request, queryset, FiberStatus.CANCELLED)

    def _resolve(self, request: HttpRequest, queryset: QuerySet[Fiber], status: FiberStatus) -> None:
        chosen = list(queryset)
        done = [fiber for fiber in chosen if services.resolve_fiber(fiber.pk, status)]
        for fiber in done:
            self.log_change(request, fiber, str(STATUS_WORDS[status]))
        text = _("%(done)d of %(all)d changed.")
        self.message_user(request, str(text) % {"done": len(done), "all": len(chosen)}, messages.SUCCESS)
