"""Tables of the change feed. Triggers of the database write them (`chat/feed/triggers.py`)."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class FeedHead(models.Model):
    """The feed of one person's conversations. While it is open, each change takes the next number of `seq`."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    seq = models.PositiveBigIntegerField(_("last change"), default=0)
    floor = models.PositiveBigIntegerField(_("kept from"), default=0)  # what has this number or less is not kept
    is_open = models.BooleanField(_("open"), default=True)
    opened_at = models.DateTimeField(_("opened"), db_default=Now())
    used_at = models.DateTimeField(_("last used"), db_default=Now())  # within the hour

    class Meta:
        verbose_name = _("change feed")
        verbose_name_plural = _("change feeds")

    def __str__(self) -> str:
        return str(self.pk)


class FeedChange(models.Model):
    """A name of something that changed. Its value is read when it is asked for, so nothing private is kept twice."""

    feed = models.ForeignKey(
        FeedHead, on_delete=models.CASCADE, related_name="changes", db_constraint=False, db_index=False
    )
    seq = models.PositiveBigIntegerField()
    instance_id = models.CharField(max_length=64)  # the conversation; empty: of none alone, as a workspace
    type = models.CharField(max_length=16)
    key = models.CharField(max_length=300)
    op = models.CharField(max_length=8)  # insert, update, delete; reset: all that is below it is gone
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("entry of a change feed")
        verbose_name_plural = _("entries of change feeds")
        constraints = [models.UniqueConstraint(fields=["feed", "seq"], name="think_feed_change")]

    def __str__(self) -> str:
        return f"{self.seq} {self.op} {self.type} {self.key}"
