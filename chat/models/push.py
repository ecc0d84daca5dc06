"""Tables of what is pushed to people: their devices, what each person wants, and the key that signs for this site."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_push_device_id() -> str:
    """Id of a device that is pushed to."""
    return new_id("dev")


class NoticeKind(models.TextChoices):
    """The kinds of things that are pushed."""

    DECISION = "decision", _("a call waits for your decision")
    ANSWER = "answer", _("an answer is ready")
    SCHEDULE = "schedule", _("a schedule failed")
    TEST = "test", _("a test")


class PushDevice(models.Model):
    """One browser of one person that is pushed to, by the address that its push service has given it."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_push_device_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("person"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=80)
    endpoint = models.TextField()
    fingerprint = models.CharField(max_length=64, unique=True)  # SHA-256 of the address, in hexadecimal digits
    public_key = models.CharField(max_length=100)  # of the browser, as it gives it: P-256, uncompressed, base64url
    auth_secret = models.CharField(max_length=40)  # base64url
    language = models.CharField(_("language"), max_length=20)
    origin = models.CharField(_("site"), max_length=300)  # where the person had the page open
    session_hash = models.CharField(max_length=64, blank=True, default="")  # of the sign-in: it ends with that
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("device")
        verbose_name_plural = _("devices")

    def __str__(self) -> str:
        return self.name


class NoticeChoices(models.Model):
    """The wishes of a person. Without a row: everything, at any hour, once there is a device."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, verbose_name=_("person"), primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    decision = models.BooleanField(_("decisions"), default=True)
    answer = models.BooleanField(_("answers"), default=True)
    schedule = models.BooleanField(_("schedules"), default=True)
    quiet_from = models.TimeField(_("quiet from"), null=True, blank=True)
    quiet_until = models.TimeField(_("quiet until"), null=True, blank=True)
    zone = models.CharField(_("time zone"), max_length=64, default="UTC")

    class Meta:
        verbose_name = _("wishes about notifications")
        verbose_name_plural = _("wishes about notifications")

    def __str__(self) -> str:
        return str(self.user_id)


class PushKey(models.Model):
    """The one key that signs pushes of this site: devices are bound to it, so it is made once and never changed."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    private_key = models.TextField()  # encrypted
    public_key = models.CharField(max_length=100)  # P-256, uncompressed, base64url
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("key of pushes")
        verbose_name_plural = _("keys of pushes")

    def __str__(self) -> str:
        return self.public_key
