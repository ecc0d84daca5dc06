"""Tables of people's accounts: where they are signed in, the exports of all that is theirs, their keys."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_sign_in_id() -> str:
    """Id of a sign-in."""
    return new_id("sgn")


def new_export_id() -> str:
    """Id of an export."""
    return new_id("exp")


class SignedInBrowser(models.Model):
    """A browser that a person has signed in with. It goes with its session, and no address of a network is kept.

    `credential`: the key of the session and the hash that it began with, encrypted, for any engine of sessions.
    """

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_sign_in_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    key_hash = models.CharField(max_length=64, unique=True)
    credential = models.TextField()
    browser = models.CharField(_("browser"), max_length=40, blank=True, default="")  # empty: not known
    system = models.CharField(_("system"), max_length=40, blank=True, default="")
    created_at = models.DateTimeField(_("signed in"), default=timezone.now)
    seen_at = models.DateTimeField(_("last seen"), default=timezone.now)

    class Meta:
        verbose_name = _("signed-in browser")
        verbose_name_plural = _("signed-in browsers")
        indexes = [
            models.Index(fields=["user", "-seen_at"], name="think_sign_in_user"),
            models.Index(fields=["seen_at"], name="think_sign_in_seen"),
        ]

    def __str__(self) -> str:
        return self.pk


class DataExport(models.Model):
    """An export of everything of a person's, as one zip in storage. Its fiber writes it."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_export_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    fiber = models.ForeignKey("think_fibers.Fiber", null=True, on_delete=models.SET_NULL, related_name="+")
    storage_name = models.CharField(_("name in storage"), max_length=255, blank=True, default="")
    byte_size = models.PositiveBigIntegerField(_("bytes"), default=0)
    done_count = models.PositiveBigIntegerField(_("written"), default=0)
    total_count = models.PositiveBigIntegerField(_("to write"), default=0)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        verbose_name = _("export of everything")
        verbose_name_plural = _("exports of everything")
        indexes = [models.Index(fields=["owner", "-created_at"], name="think_export_recent")]

    def __str__(self) -> str:
        return self.pk


class ProviderKey(models.Model):
    """A key of a person's own for a provider of models, encrypted. `ending`: its last characters, to be shown."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    provider = models.CharField(_("provider"), max_length=100)
    secret = models.TextField()
    ending = models.CharField(max_length=8)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    tried_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, blank=True, default="")  # of the last trial

    class Meta:
        verbose_name = _("key for a provider")
        verbose_name_plural = _("keys for providers")
        constraints = [models.UniqueConstraint(fields=["user", "provider"], name="think_provider_key")]

    def __str__(self) -> str:
        return f"{self.provider} of {self.user_id}"
