"""Every reusable filter on fibers. `Now()` is the database's clock on both databases."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from fibers.conf import fiber_settings
from fibers.core.states import TERMINAL, FiberStatus

if TYPE_CHECKING:
    from fibers.models import Fiber  # noqa: F401 - named in a string: mypy needs the argument, Django not


class FiberQuerySet(models.QuerySet["Fiber"]):
    """Fibers by what may happen to them."""

    def claimable(self) -> Self:
        """Those that a worker may take now: due, not cancelled, first of a lane where none runs, of a share with room.

        Two claims that do not see each other may exceed a share by one: it is a matter of fairness, not of order.
        """
        others = self.model._default_manager.filter(lane=OuterRef("lane"), finished_at=None)
        running = others.filter(status=FiberStatus.RUNNING)
        earlier = others.filter(
            status__in=(FiberStatus.PENDING, FiberStatus.PARKED), lane_position__lt=OuterRef("lane_position")
        )
        return self.within_share().filter(
            ~Exists(running),
            ~Exists(earlier),
            status=FiberStatus.PENDING,
            available_at__lte=Now(),
            cancel_requested_at=None,
        )

    def within_share(self) -> Self:
        """Without those of whose share as many run as may. Looks at so many rows of an index at most."""
        limit = fiber_settings.running_per_share
        if limit <= 0:
            return self
        running = self.model._default_manager.filter(share=OuterRef("share"), status=FiberStatus.RUNNING)
        return self.filter(Q(share=None) | ~Exists(running.order_by()[limit - 1 : limit]))

    def resumable(self, windows: Mapping[str, float]) -> Self:
        """Without those that were started and then lay for longer than their function allows (name to seconds)."""
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
        """Those nobody was told about in the last seconds."""
        return self.filter(Q(dispatched_at=None) | Q(dispatched_at__lt=Now() - timedelta(seconds=seconds)))

    def expired(self) -> Self:
        """Running ones whose worker no longer beats."""
        return self.filter(status=FiberStatus.RUNNING, lease_until__lt=Now())

    def held(self, fiber_id: str, fence: int) -> Self:
        """The one fiber, if the lease with this fence still holds."""
        return self.filter(pk=fiber_id, fence=fence, status=FiberStatus.RUNNING)

    def live_in(self, lane: str) -> Self:
        """Those of one lane that have not ended, in their order. Costs what is under way, not what ended there."""
        # The status decides; that nothing ended has no `finished_at` is what the index knows.
        return self.filter(lane=lane, finished_at=None).exclude(status__in=TERMINAL).order_by("lane_position")

    def finished_before(self, statuses: tuple[FiberStatus, ...], seconds: float) -> Self:
        """Terminal ones older than this."""
        return self.filter(status__in=statuses, finished_at__lt=Now() - timedelta(seconds=seconds))


def _lay_too_long(name: str, seconds: float) -> Q:
    return Q(name=name, attempt__gt=0, updated_at__lt=Now() - timedelta(seconds=seconds))
