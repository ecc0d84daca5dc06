"""Tables of tool calls, and append-only events for requests and decisions."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool_calls import OPEN, CallStatus


class ToolCallRecord(models.Model):
    """One tool call of one turn. Who claims it, and when, decides where it runs; its first result is its result."""

    turn_id = models.CharField(max_length=64)  # opaque here
    scope = models.CharField(max_length=64, blank=True, default="")  # opaque: where open calls are looked for
    call_id = models.CharField(_("call id"), max_length=128)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    tool_name = models.CharField(_("tool"), max_length=64)
    input = JSONText(default=dict)
    status = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in CallStatus], default=CallStatus.RUNNING
    )
    output = JSONText(null=True, blank=True)
    details = JSONText(null=True, blank=True)  # besides the output: `tools_app.core.tool_calls.details_of`
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    duration_ms = models.PositiveIntegerField(default=0)
    approval_id = models.CharField(
        _("approval id"), max_length=128, blank=True, default=""
    )  # set when a person was asked
    question = JSONText(null=True, blank=True)  # what that person was asked: `tools_app.core.questions.Question`
    edited_input = JSONText(null=True, blank=True)  # the arguments that run instead, where the decision changed them
    wait_key = models.CharField(max_length=150, blank=True, default="")  # of the parked turn that its decision wakes:
    # set for a call that another call makes, as code does. Such a call is no part of a message.
    continues = models.BooleanField(_("goes on by itself"), default=False)  # its answer asked for that
    lasting = models.BooleanField(_("stays open"), default=False)  # its question, when the conversation goes on
    expires_at = models.DateTimeField(
        _("expires"), null=True, blank=True
    )  # of the question; afterwards it counts as denied
    executor = models.ForeignKey(
        "think_fibers.Fiber", verbose_name=_("job"), null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )  # that runs it in another process; its status is the call's status there
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    settled_at = models.DateTimeField(_("settled"), null=True, blank=True)

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        permissions = [("run_calls_of_all", "Can run the calls of all users in an executor")]
        constraints = [models.UniqueConstraint(fields=["turn_id", "call_id"], name="think_tool_call")]
        indexes = [
            models.Index(fields=["-created_at"], name="think_tool_call_recent"),
            models.Index(fields=["scope"], condition=models.Q(status__in=sorted(OPEN)), name="think_tool_call_open"),
            models.Index(
                fields=["owner", "-id"], condition=models.Q(status=CallStatus.ASKED), name="think_tool_call_asked"
            ),
            models.Index(
                fields=["expires_at"],
                condition=models.Q(status=CallStatus.ASKED, expires_at__isnull=False),
                name="think_tool_call_expiring",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.call_id}"

    @property
    def input_to_run(self) -> JSONObject:
        """The arguments that the call runs with: those of the model, or what a person made of them."""
        arguments: JSONObject = self.input if self.edited_input is None else self.edited_input
        return arguments


class ApprovalEventKind(models.TextChoices):
    """The kind of an audit event."""

    ASKED = "asked", _("Asked")
    APPROVED = "approved", _("Approved")
    DENIED = "denied", _("Denied")
    EXPIRED = "expired", _("Expired")
    SUPERSEDED = "superseded", _("Not answered")  # the conversation went on without an answer
    ALLOWED = "allowed", _("Allowed by a rule")  # without a question; `reason`: the rule
    REFUSED = "refused", _("Refused by a rule")


class ApprovalEvent(models.Model):
    """A decision about a call, or what became of the question: added, never changed. Deleted only with its call."""

    call = models.ForeignKey(ToolCallRecord, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(_("event"), max_length=16, choices=ApprovalEventKind.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )  # none: the product itself
    via = models.CharField(_("via"), max_length=16)  # the way it came in: socket, api, admin, server, turn
    reason = models.CharField(_("reason"), max_length=1000, blank=True, default="")
    input_hash = models.CharField(_("hash of the arguments"), max_length=64)  # of the arguments that were asked about
    edited_input = JSONText(null=True, blank=True)  # of an approval that changed them
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.call_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a new event. Errors: `TypeError` for an existing one."""
        if not self._state.adding:
            raise TypeError("Approval events are added and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse. Errors: `TypeError`, always."""
        raise TypeError("Approval events are added and never deleted.")
