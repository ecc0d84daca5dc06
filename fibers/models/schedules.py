"""Tables of schedules and of what they started. Django finds them through `fibers.models`."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import ScheduleKind, Timing
from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id

STATUSES = [
    (ScheduleStatus.ACTIVE.value, _("active")),
    (ScheduleStatus.PAUSED.value, _("paused")),
    (ScheduleStatus.ENDED.value, _("ended")),
    (ScheduleStatus.BROKEN.value, _("broken")),
]
KINDS = [
    (ScheduleKind.DELAY.value, _("once, after a delay")),
    (ScheduleKind.INSTANT.value, _("once, at an instant")),
    (ScheduleKind.CRON.value, _("at wall-clock times")),
    (ScheduleKind.INTERVAL.value, _("every so often")),
]


def new_schedule_id() -> str:
    """Id of a schedule."""
    return new_id("sch")


class Schedule(models.Model):
    """A durable function that is started at times to come. `next_at` is the only timer it has.

    Every change raises `revision`, so that what was read before it counts no more.
    """

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_schedule_id, editable=False)
    scope = models.CharField(_("scope"), max_length=64)  # opaque: what the schedule is part of
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    title = models.CharField(_("title"), max_length=200, blank=True, default="")
    kind = models.CharField(_("kind"), max_length=16, choices=KINDS)
    spec = models.CharField(_("times"), max_length=200)  # seconds, an ISO instant, or cron
    zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    function = models.CharField(_("function"), max_length=200)  # name of the durable function; a contract
    payload = JSONText(_("input"), null=True, blank=True)
    max_retries = models.PositiveIntegerField(_("retries allowed"), default=0)  # of each run
    can_overlap = models.BooleanField(_("runs may overlap"), default=False)
    max_run_seconds = models.PositiveIntegerField(_("longest run"), default=3600)  # then the next one stops it
    created_by = models.CharField(_("created by"), max_length=16, blank=True, default="")  # opaque
    # Of a declaration in code; unique in its scope.
    declaration = models.CharField(_("declared as"), max_length=200, null=True, blank=True)
    # Of what is stored once only; unique in its scope.
    fingerprint = models.CharField(max_length=64, null=True, blank=True, editable=False)
    status = models.CharField(_("state"), max_length=16, choices=STATUSES, default=ScheduleStatus.ACTIVE)
    error = models.TextField(_("error"), blank=True, default="")  # why it is broken
    next_at = models.DateTimeField(_("next run"), null=True, blank=True)
    last_at = models.DateTimeField(_("last run"), null=True, blank=True)  # the instant it was due
    skipped = models.PositiveIntegerField(_("left out"), default=0)  # in a row, as the run before went on
    revision = models.PositiveBigIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(_("created"), db_default=Now(), editable=False)
    updated_at = models.DateTimeField(_("changed"), db_default=Now(), editable=False)

    class Meta:
        app_label = "think_fibers"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        permissions = [("run_schedule", "Can pause, resume and run a schedule")]
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "declaration"], condition=Q(declaration__isnull=False), name="think_schedule_declared"
            ),
            models.UniqueConstraint(
                fields=["scope", "fingerprint"], condition=Q(fingerprint__isnull=False), name="think_schedule_once"
            ),
        ]
        indexes = [
            models.Index(fields=["next_at", "id"], condition=Q(status="active"), name="think_schedule_due"),
            models.Index(fields=["updated_at"], condition=Q(status="ended"), name="think_schedule_ended"),
            models.Index(fields=["scope", "created_at"], name="think_schedule_scope"),
        ]

    def __str__(self) -> str:
        return self.title or f"{self.kind} {self.spec}"

    @property
    def timing(self) -> Timing:
        """When it is due."""
        return Timing(kind=ScheduleKind(self.kind), spec=self.spec, zone=self.zone)


class ScheduleRun(models.Model):
    """One occurrence that began. How it went is the status of its fiber, which stays as long as this row."""

    schedule = models.ForeignKey(
        Schedule, verbose_name=_("schedule"), on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    due_at = models.DateTimeField(_("due"))
    is_test = models.BooleanField(_("asked for"), default=False)  # "run now", besides the times
    # PROTECT: finished fibers are deleted after a while, but not those of runs that are still shown.
    fiber = models.OneToOneField(
        "think_fibers.Fiber", verbose_name=_("fiber"), on_delete=models.PROTECT, related_name="schedule_run"
    )
    created_at = models.DateTimeField(_("started"), db_default=Now(), editable=False)

    class Meta:
        app_label = "think_fibers"
        verbose_name = _("run of a schedule")
        verbose_name_plural = _("runs of schedules")
        indexes = [models.Index(fields=["schedule", "-created_at"], name="think_schedule_run_recent")]

    def __str__(self) -> str:
        return f"{self.schedule_id} {self.due_at}"
