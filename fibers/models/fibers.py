"""Tables of durable execution: a fiber, its journal; schedules and their runs are in `schedule_models`."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from fibers.conf import fiber_settings
from fibers.core.states import HALTED, TERMINAL, FiberStatus
from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id

KEEP_HALTED: Final = timedelta(days=37)
"""How long a halted fiber is kept at least: what it belongs to may be back after a month, and a person sees it then."""


def new_fiber_id() -> str:
    """Id of a fiber."""
    return new_id("fib")


class FiberQuerySet(models.QuerySet["Fiber"]):
    """Fibers by what may happen to them."""

    def claimable(self, names: Collection[str] | None = None) -> Self:
        """Fibers that a worker may claim: due, not cancelled, first of an idle lane, of a share with a free slot.

        `names`: the functions that the worker has, if only those count.
        Two claims that do not see each other may exceed a share by one: it is a matter of fairness, not of order.
        """
        others = self.model._default_manager.filter(lane=OuterRef("lane"), finished_at=None)
        running = others.filter(status=FiberStatus.RUNNING)
        earlier = others.filter(
            status__in=(FiberStatus.PENDING, FiberStatus.PARKED), lane_position__lt=OuterRef("lane_position")
        )
        return (
            self.of(names)
            .within_share()
            .filter(
                ~Exists(running),
                ~Exists(earlier),
                status=FiberStatus.PENDING,
                available_at__lte=Now(),
                cancel_requested_at=None,
            )
        )

    def of(self, names: Collection[str] | None) -> Self:
        """Fibers of these functions; `None`: all."""
        return self if names is None else self.filter(name__in=names)

    def within_share(self) -> Self:
        """Exclude fibers of full shares. Reads at most that many index rows."""
        limit = fiber_settings.running_per_share
        if limit <= 0:
            return self
        running = self.model._default_manager.filter(share=OuterRef("share"), status=FiberStatus.RUNNING)
        return self.filter(Q(share=None) | ~Exists(running.order_by()[limit - 1 : limit]))

    def resumable(self, windows: Mapping[str, float]) -> Self:
        """Exclude fibers that had started and then lay longer than their function allows (name to seconds)."""
        fibers = self
        for name, seconds in windows.items():
            fibers = fibers.exclude(_lay_too_long(name, seconds))
        return fibers

    def lapsed(self, windows: Mapping[str, float]) -> Self:
        """Pending ones that were started and then lay for longer than their function allows."""
        lapsed = Q(pk__in=[])
        for name, seconds in windows.items():
            lapsed |= _lay_too_long(name, seconds)
        return self.filter(lapsed, status=FiberStatus.PENDING)

    def undispatched(self, seconds: float) -> Self:
        """Exclude fibers dispatched in the last seconds."""
        return self.filter(Q(dispatched_at=None) | Q(dispatched_at__lt=Now() - timedelta(seconds=seconds)))

    def expired(self) -> Self:
        """Running ones whose worker no longer beats."""
        return self.filter(status=FiberStatus.RUNNING, lease_until__lt=Now())

    def held(self, fiber_id: str, fence: int) -> Self:
        """The fiber, if the lease with this fence is still valid."""
        return self.filter(pk=fiber_id, fence=fence, status=FiberStatus.RUNNING)

    def live_in(self, lane: str) -> Self:
        """Active fibers of a lane, in order. The cost does not depend on ended ones."""
        # The status decides; that nothing ended has no `finished_at` is what the index knows.
        return self.filter(lane=lane, finished_at=None).exclude(status__in=TERMINAL).order_by("lane_position")

    def finished_before(self, statuses: tuple[FiberStatus, ...], seconds: float) -> Self:
        """Terminal ones older than this. What was halted is kept longer: it may run again."""
        old = self.filter(status__in=statuses, finished_at__lt=Now() - timedelta(seconds=seconds))
        return old.exclude(reason=HALTED, finished_at__gt=Now() - KEEP_HALTED)


def _lay_too_long(name: str, seconds: float) -> Q:
    return Q(name=name, attempt__gt=0, updated_at__lt=Now() - timedelta(seconds=seconds))


class Fiber(models.Model):
    """One durable run of a named function. The holder of the lease runs it, with the fence of that lease."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_fiber_id, editable=False)
    name = models.CharField(_("function"), max_length=200)  # of the durable function; a contract
    payload = JSONText(_("input"), null=True, blank=True)
    metadata = JSONText(_("metadata"), default=dict)  # the caller's own, never interpreted here
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    lane = models.CharField(_("lane"), max_length=200, null=True, blank=True)  # opaque; one running fiber per lane
    lane_position = models.PositiveBigIntegerField(_("place in the lane"), default=0)  # order within the lane
    share = models.CharField(
        _("share"), max_length=100, null=True, blank=True
    )  # opaque; few of one share run at a time
    scope = models.CharField(_("scope"), max_length=200, null=True, blank=True)  # opaque; what it belongs to
    key = models.CharField(_("key"), max_length=200, null=True, blank=True, unique=True)  # idempotency
    status = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in FiberStatus], default=FiberStatus.PENDING
    )
    reason = models.CharField(max_length=64, blank=True, default="")  # why it stands there, one word
    result = JSONText(_("result"), null=True, blank=True)
    error = JSONText(null=True, blank=True)  # {"code", "message", "retryable"}
    stash = JSONText(_("stash"), null=True, blank=True)  # the function's own snapshot
    fence = models.PositiveBigIntegerField(_("fence"), default=0)  # advanced by each claim
    worker = models.CharField(_("worker"), max_length=100, blank=True, default="")
    lease_until = models.DateTimeField(_("lease until"), null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempts"), default=0)  # claims so far
    retries = models.PositiveIntegerField(_("retries"), default=0)  # failed runs so far
    max_retries = models.PositiveIntegerField(_("retries allowed"), default=0)
    recoveries = models.PositiveIntegerField(_("recoveries"), default=0)  # lost leases without progress in between
    progress = models.PositiveBigIntegerField(_("progress"), default=0)  # settled steps and shown chunks
    recovered_progress = models.PositiveBigIntegerField(_("progress when last recovered"), default=0)
    incident = JSONText(_("losses of its worker"), null=True, blank=True)  # `fibers.core.budget.Incident`
    # first recovery in a row without progress
    stalled_at = models.DateTimeField(_("without progress since"), null=True, blank=True)
    waits = JSONText(default=list)  # what it was parked for, until the attempt that follows ends
    parked_until = models.DateTimeField(_("parked until"), null=True, blank=True)  # when the first of its waits is over
    cancel_requested_at = models.DateTimeField(_("stop requested"), null=True, blank=True)
    resume_requested_at = models.DateTimeField(
        _("resume requested"), null=True, blank=True
    )  # resumed while it was still running
    dispatched_at = models.DateTimeField(_("workers last notified"), null=True, blank=True)
    available_at = models.DateTimeField(_("not before"), db_default=Now())  # not claimed before
    created_at = models.DateTimeField(_("created"), db_default=Now(), editable=False)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    updated_at = models.DateTimeField(_("last active"), db_default=Now(), editable=False)  # last move or heartbeat
    finished_at = models.DateTimeField(_("ended"), null=True, blank=True)

    objects = FiberQuerySet.as_manager()

    class Meta:
        verbose_name = _("fiber")
        verbose_name_plural = _("fibers")
        permissions = [("cancel_fiber", "Can cancel a fiber"), ("requeue_fiber", "Can run a fiber again")]
        constraints = [
            models.UniqueConstraint(fields=["lane"], condition=Q(status="running"), name="think_fiber_one_per_lane"),
            models.UniqueConstraint(
                fields=["lane", "lane_position"],
                condition=Q(lane__isnull=False),
                name="think_fiber_lane_order",
            ),
        ]
        indexes = [
            models.Index(fields=["available_at", "id"], condition=Q(status="pending"), name="think_fiber_pending"),
            models.Index(fields=["lease_until"], condition=Q(status="running"), name="think_fiber_leases"),
            models.Index(fields=["share"], condition=Q(status="running"), name="think_fiber_share"),
            models.Index(fields=["parked_until"], condition=Q(status="parked"), name="think_fiber_parked"),
            models.Index(fields=["finished_at"], name="think_fiber_finished"),
            models.Index(fields=["owner", "created_at"], name="think_fiber_owner"),  # what one asked for lately
            models.Index(
                fields=["scope", "created_at"], condition=Q(scope__isnull=False), name="think_fiber_scope"
            ),  # what belongs together, however much else there is
            models.Index(
                fields=["owner"], condition=Q(scope__isnull=False, finished_at=None), name="think_fiber_scoped_live"
            ),
            models.Index(
                fields=["owner", "created_at"], condition=Q(finished_at=None), name="think_fiber_under_way"
            ),  # what is at work for one person
            # Finds what is under way in a lane, however much ended there.
            models.Index(fields=["lane", "lane_position"], condition=Q(finished_at=None), name="think_fiber_live"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.id}"


class FiberStep(models.Model):
    """One settled step of a fiber: its record is returned instead of running it again."""

    fiber = models.ForeignKey(Fiber, on_delete=models.CASCADE, related_name="steps")
    step_key = models.CharField(_("step"), max_length=200)  # `model:3`, `call:<id>`
    value = JSONText(_("value"), null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempt"))
    created_at = models.DateTimeField(_("created"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        constraints = [models.UniqueConstraint(fields=["fiber", "step_key"], name="think_fiber_step")]

    def __str__(self) -> str:
        return f"{self.fiber_id} {self.step_key}"


class RunnerCheckpoint(models.Model):
    """The place of a runner in one of its sources. The cursor only advances (`fibers.core.cursors`)."""

    runner = models.CharField(_("runner"), max_length=200)
    source = models.CharField(_("source"), max_length=200)
    cursor = models.CharField(_("cursor"), max_length=500)
    updated_at = models.DateTimeField(_("last changed"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("checkpoint")
        verbose_name_plural = _("checkpoints")
        constraints = [models.UniqueConstraint(fields=["runner", "source"], name="think_runner_source")]

    def __str__(self) -> str:
        return f"{self.runner} {self.source}"
