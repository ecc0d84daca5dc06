"""Tables of effects: the rows that a queryset had when it was last looked at. Django finds them in `fibers.models`."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText


class EffectState(models.Model):
    """One effect, as all processes share it. A process that compares and fires holds the lock of this row."""

    name = models.CharField(_("name"), primary_key=True, max_length=100)
    is_primed = models.BooleanField(_("knows what was there"), default=False)  # the first look has been
    due_at = models.DateTimeField(_("next look"), db_default=Now())
    looked_at = models.DateTimeField(_("last look"), null=True)
    looks = models.PositiveBigIntegerField(_("changes found"), default=0)  # times that a look found something
    error = models.TextField(_("error"), blank=True, default="")  # of the last look
    created_at = models.DateTimeField(_("created"), db_default=Now(), editable=False)

    class Meta:
        app_label = "think_fibers"
        verbose_name = _("effect of a queryset")
        verbose_name_plural = _("effects of querysets")
        permissions = [("look_effect", "Can have an effect look at once")]

    def __str__(self) -> str:
        return self.name


class EffectEntry(models.Model):
    """A row that is in an effect's queryset, as far as was seen. Its id is never used again, so it names one entry."""

    effect = models.ForeignKey(EffectState, on_delete=models.CASCADE, related_name="entries", db_index=False)
    object_pk = models.CharField(_("row"), max_length=200)
    fingerprint = JSONText(_("fingerprint"), null=True, blank=True)  # tells whether the row has changed
    revision = models.PositiveBigIntegerField(_("changes seen"), default=0)
    created_at = models.DateTimeField(_("entered"), db_default=Now(), editable=False)

    class Meta:
        app_label = "think_fibers"
        verbose_name = _("entry of an effect")
        verbose_name_plural = _("entries of effects")
        constraints = [models.UniqueConstraint(fields=["effect", "object_pk"], name="think_effect_entry")]

    def __str__(self) -> str:
        return f"{self.effect_id} {self.object_pk}"
