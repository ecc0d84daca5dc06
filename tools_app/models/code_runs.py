"""Tables of code that models wrote and that ran: one row for each run, one for each call that it made."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText


class ExecutionStatus(models.TextChoices):
    """The status of an execution. It runs again from its beginning until it has ended."""

    RUNNING = "running"
    WAITING = "waiting"  # for a person's decision, or another answer; no process is held
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Execution(models.Model):
    """Code that a model wrote, under the key of the tool call that contains it."""

    key = models.CharField(_("key"), max_length=200, unique=True)
    scope = models.CharField(max_length=64)  # opaque: whose executions are kept and counted together
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    turn_id = models.CharField(max_length=64)
    call_id = models.CharField(_("call id"), max_length=128)
    code = models.TextField()
    seed = models.CharField(_("seed"), max_length=32)  # of the code's random numbers
    clock_ms = models.BigIntegerField()  # the code's time when it begins, since 1970
    status = models.CharField(max_length=16, choices=ExecutionStatus.choices, default=ExecutionStatus.RUNNING)
    outcome = models.CharField(_("outcome"), max_length=16, blank=True, default="")
    value = JSONText(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    console = JSONText(default=list, blank=True)
    duration_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        app_label = "think_tools"
        verbose_name = _("execution")
        verbose_name_plural = _("executions")
        indexes = [
            models.Index(fields=["scope", "-id"], name="think_execution_scope"),
            models.Index(fields=["turn_id"], name="think_execution_turn"),
            models.Index(
                fields=["owner", "-id"],
                condition=models.Q(status=ExecutionStatus.WAITING),
                name="think_execution_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class ExecutionCallStatus(models.TextChoices):
    """The status of a call that code made. A settled one is the answer whenever the code runs again."""

    BEGUN = "begun"  # whether a person has to decide is not known
    ASKED = "asked"  # a person decides before it runs
    RUNNING = "running"
    WAITING = "waiting"  # its tool has parked
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ExecutionCall(models.Model):
    """One call of an execution: written before it runs, and settled before the code has its answer."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="calls")
    ordinal = models.PositiveIntegerField()  # its place among the calls, from 1
    name = models.CharField(_("function"), max_length=300)
    input = JSONText(null=True, blank=True)  # the arguments, a list
    input_hash = models.CharField(max_length=64)
    edited_input = JSONText(null=True, blank=True)  # what runs instead, where a decision changed it
    status = models.CharField(max_length=16, choices=ExecutionCallStatus.choices)
    was_asked = models.BooleanField(default=False)  # a person was asked whether it may run
    output = JSONText(null=True, blank=True)
    details = JSONText(null=True, blank=True)  # what the result of the tool call with the code has of it: its files
    settled_as = models.PositiveIntegerField(null=True, blank=True)  # its place among the answers, from 1
    clock_ms = models.BigIntegerField(default=0)  # the code's time when it has its answer
    attempt = models.PositiveIntegerField(default=1)
    duration_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "think_tools"
        verbose_name = _("call of an execution")
        verbose_name_plural = _("calls of executions")
        ordering = ["ordinal"]
        constraints = [models.UniqueConstraint(fields=["execution", "ordinal"], name="think_execution_call")]

    def __str__(self) -> str:
        return f"{self.name} {self.ordinal}"
