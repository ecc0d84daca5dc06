"""Table of saved prompts: texts that a person writes once and uses often."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_prompt_id() -> str:
    """Id of a saved prompt."""
    return new_id("prm")


class SavedPrompt(models.Model):
    """A text of one person's, by a name of its own. `{names}` in it are asked for when it is used."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_prompt_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("person"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=60)
    text = models.TextField(_("text"))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("saved prompt")
        verbose_name_plural = _("saved prompts")
        constraints = [models.UniqueConstraint("user", Lower("name"), name="think_prompt_name")]

    def __str__(self) -> str:
        return self.name
