"""The table of what a person prefers: how the page looks and speaks, and what agents read about its owner."""

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

THEMES: Final = [("light", _("light")), ("dark", _("dark"))]
"""The colours of the page; empty: as the system has them."""

TEXT_SIZES: Final = [("small", _("small")), ("large", _("large")), ("larger", _("larger"))]
"""The size of the page's text; empty: the standard one."""


class PersonPreferences(models.Model):
    """The preferences of one person; without a row everything is as it comes. Empty fields were not chosen."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    name = models.CharField(_("name"), max_length=80, blank=True, default="")  # how the person is addressed
    language = models.CharField(_("language"), max_length=16, blank=True, default="")
    zone = models.CharField(_("time zone"), max_length=64, blank=True, default="")
    theme = models.CharField(_("theme"), max_length=8, blank=True, default="", choices=THEMES)
    text_size = models.CharField(_("text size"), max_length=8, blank=True, default="", choices=TEXT_SIZES)
    about_me = models.TextField(_("about me"), blank=True, default="")
    how_to_answer = models.TextField(_("how to answer"), blank=True, default="")
    read_by = models.JSONField(_("read by"), null=True, blank=True, default=None)  # names of agents; null: all of them
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("preferences")
        verbose_name_plural = _("preferences")

    def __str__(self) -> str:
        return str(self.pk)
