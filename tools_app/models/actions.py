"""The table of actions' effects. Django finds it through `tools_app.models`."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from tools_app.core.action_rules import ActionStatus, UndoStatus


class ActionRecord(models.Model):
    """One effect of an action, by its key. Settled once: the conditional update of the row decides.

    A key counts within its scope, an instance: no conversation is ever answered with the result of another, and what a
    key means need not be unique over all people.
    """

    scope = models.CharField(max_length=64)  # opaque: the instance
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    action = models.CharField(_("action"), max_length=64)
    key = models.CharField(_("key"), max_length=255)
    is_explicit = models.BooleanField(
        _("has a key of its own"), default=False
    )  # the developer's own key, not that of the call
    input = JSONText(default=dict)
    input_hash = models.CharField(max_length=64)
    status = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in ActionStatus], default=ActionStatus.PENDING
    )
    output = JSONText(null=True, blank=True)  # of a failed one: its error
    reply = JSONText(null=True, blank=True)  # parts that it adds to the assistant's reply
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    attempt_token = models.CharField(max_length=64)  # of the attempt that may settle it
    lease_until = models.DateTimeField(_("lease until"))  # afterwards an explicit key can be claimed anew
    undo = models.CharField(max_length=100, blank=True, default="")  # the name of its compensation
    undo_status = models.CharField(
        max_length=16,
        blank=True,
        choices=[(s.value, s.value) for s in UndoStatus if s],
        default=UndoStatus.NONE,
    )
    undo_output = JSONText(null=True, blank=True)
    turn_id = models.CharField(max_length=64, blank=True, default="")  # opaque; of the call that claimed it last
    call_id = models.CharField(_("call id"), max_length=128, blank=True, default="")
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    settled_at = models.DateTimeField(_("settled"), null=True, blank=True)

    class Meta:
        db_table = "think_tools_action"
        verbose_name = _("action")
        verbose_name_plural = _("actions")
        constraints = [models.UniqueConstraint(fields=["scope", "action", "key"], name="think_tool_action")]
        indexes = [
            models.Index(fields=["owner", "-id"], name="think_tool_action_owner"),
            models.Index(fields=["status", "created_at"], name="think_tool_action_age"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.key}"
