"""Table of reverts: what a person has taken back of a conversation, so that it can be brought back."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_revert_id() -> str:
    """Id of a revert; what it replaced in files is kept under it."""
    return new_id("rvt")


class Revert(models.Model):
    """One undo, or one redo of an undo. Written in the transaction that changes the files and the shown path."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_revert_id, editable=False)
    instance = models.ForeignKey("think_chat.AgentInstance", on_delete=models.CASCADE, related_name="reverts")
    session_id = models.CharField(max_length=64)  # the history whose path it changed
    turn_id = models.CharField(max_length=64)  # the first turn that was taken back; the turn may be gone
    redoes = models.OneToOneField("self", null=True, blank=True, on_delete=models.CASCADE, related_name="redone_by")
    includes_files = models.BooleanField(_("files"), default=False)
    includes_messages = models.BooleanField(_("messages"), default=False)
    file_count = models.PositiveIntegerField(_("changed files"), default=0)
    left_count = models.PositiveIntegerField(default=0)  # files that stayed as they were
    leaf_before = models.CharField(max_length=128, blank=True, default="")  # message that ended the shown path
    leaf_after = models.CharField(max_length=128, blank=True, default="")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("undo")
        verbose_name_plural = _("undos")
        indexes = [models.Index(fields=["instance", "created_at"], name="think_revert_recent")]

    def __str__(self) -> str:
        return self.id


class KeptChange(models.Model):
    """A change of a file that a person has looked at and keeps, known by what it is: another one is not kept by it."""

    instance = models.ForeignKey("think_chat.AgentInstance", on_delete=models.CASCADE, related_name="kept_changes")
    digest = models.CharField(max_length=64)  # of the path and the lines, or of the versions
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("kept change")
        verbose_name_plural = _("kept changes")
        constraints = [models.UniqueConstraint(fields=["instance", "digest"], name="think_kept_change")]

    def __str__(self) -> str:
        return self.digest
