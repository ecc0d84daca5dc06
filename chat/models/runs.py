"""Table of runs: an agent that works for another one, as a tool of it or for its code.

The run's work is an ordinary turn of the child. What is kept here is the caller's side: which call started it, how it
is shown, and how it ended for the caller, which may be earlier than the child's turn ends.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id


def new_run_id() -> str:
    """Id of a run."""
    return new_id("run")


class AgentRun(models.Model):
    """One run of a child for its parent. It is under way until `outcome` is set, which happens once."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_run_id, editable=False)
    parent = models.ForeignKey(
        "think_chat.AgentInstance", verbose_name=_("parent"), on_delete=models.CASCADE, related_name="runs"
    )
    child = models.ForeignKey(
        "think_chat.AgentInstance",
        verbose_name=_("child"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
    )
    run_id = models.CharField(_("run id"), max_length=128)  # the caller's own, unique among the runs of one parent
    agent = models.CharField(_("agent"), max_length=200)  # kebab-case route name of the child's class
    # Whatever deletes turns takes them out of both (`chat/turns/state/deletion.py`), with one statement for any number.
    parent_turn = models.ForeignKey(
        "think_chat.Turn",
        verbose_name=_("turn of the parent"),
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="runs",
    )
    turn = models.ForeignKey(
        "think_chat.Turn",
        verbose_name=_("turn of the child"),
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
    )
    call_id = models.CharField(_("tool call"), max_length=200, blank=True, default="")  # of the parent's answer
    display_order = models.PositiveIntegerField(_("place among the runs"), default=0)
    display = JSONText(_("display"), null=True, blank=True)  # {"name", "icon", …}, as clients show it
    input_preview = JSONText(_("input"), null=True, blank=True)  # bounded; what clients are shown of the input
    is_detached = models.BooleanField(_("detached"), default=False)  # no call waits for its end
    options = JSONText(_("options"), default=dict)  # of a detached run: budgets in seconds, the method to call
    progress = JSONText(_("progress"), null=True, blank=True)  # the last that was reported: {"fraction", "message"}
    progress_at = models.DateTimeField(_("last progress"), null=True, blank=True)
    # {"ok": true, "status": "completed", "summary", "output"} or
    # {"ok": false, "status", "error", "retryable", "reason"?, "childStillRunning"?}
    outcome = JSONText(_("outcome"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now(), editable=False)
    finished_at = models.DateTimeField(_("ended"), null=True, blank=True)  # for the caller

    class Meta:
        verbose_name = _("agent run")
        verbose_name_plural = _("agent runs")
        constraints = [models.UniqueConstraint(fields=["parent", "run_id"], name="think_run_of_parent")]
        indexes = [
            models.Index(fields=["parent", "-created_at"], name="think_run_recent"),
            models.Index(fields=["owner"], condition=Q(finished_at=None), name="think_run_under_way"),
            models.Index(fields=["finished_at"], condition=Q(child__isnull=False), name="think_run_with_child"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.run_id}"
