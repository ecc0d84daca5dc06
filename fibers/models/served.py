"""The functions that executors have lately had, of families whose members differ from process to process."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class ExecutorKind(models.TextChoices):
    """The way in which an executor takes its work."""

    WORKER = "worker", _("Worker")
    PROGRAM = "program", _("Program")


class ServedFunction(models.Model):
    """A function that an executor has, and when one was last there. Written by executors at most once a minute."""

    name = models.CharField(_("function"), max_length=200)  # of fibers, as in `Fiber.name`
    kind = models.CharField(_("kind"), max_length=16, choices=ExecutorKind.choices)
    queue = models.CharField(_("queue"), max_length=200, blank=True, default="")  # that it listens to
    seen_at = models.DateTimeField(_("last seen"), db_default=Now())

    class Meta:
        verbose_name = _("executor")
        verbose_name_plural = _("executors")
        constraints = [models.UniqueConstraint(fields=["name", "kind"], name="think_served_function")]
        indexes = [models.Index(fields=["queue", "seen_at"], name="think_served_queue")]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"
