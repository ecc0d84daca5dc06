"""Tables of extensions: what is loaded and for whom, its versions, what it called, and sources that are disabled."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.jsonvalue import fingerprint


class ExtensionLevel(models.TextChoices):
    """The range of an extension: one conversation, all of a person's, or all of the site's."""

    INSTANCE = "instance", _("one conversation")
    USER = "user", _("one person")
    SITE = "site", _("everybody")


class ExtensionAuthor(models.TextChoices):
    """The way by which a version was written."""

    MODEL = "model", _("a model, with a person's approval")
    API = "api", _("its owner")
    CODE = "code", _("code of the server")
    ADMIN = "admin", _("staff")


class Extension(models.Model):
    """A loaded extension, with everything of its current version but the source."""

    level = models.CharField(_("scope"), max_length=16, choices=ExtensionLevel.choices)
    scope = models.CharField(
        _("scope"), max_length=64, blank=True, default=""
    )  # opaque: the instance of one at that level
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    name = models.CharField(_("name"), max_length=64)
    prefix = models.CharField(_("prefix"), max_length=64)
    enabled = models.BooleanField(_("enabled"), default=True)
    number = models.PositiveIntegerField(_("version"), default=1)  # of the current `ExtensionVersion`
    manifest = JSONText()
    surface = JSONText()  # tools and hooks: `tools_app.core.extensions.surface.Surface`
    granted = JSONText(_("permissions"))  # within those of the manifest; asked at every call
    sha256 = models.CharField(_("hash of the source"), max_length=64)
    created_at = models.DateTimeField(_("loaded"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        app_label = "think_tools"
        verbose_name = _("extension")
        verbose_name_plural = _("extensions")
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "prefix"],
                condition=models.Q(level=ExtensionLevel.INSTANCE),
                name="think_extension_of_instance",
            ),
            models.UniqueConstraint(
                fields=["owner", "prefix"],
                condition=models.Q(level=ExtensionLevel.USER),
                name="think_extension_of_user",
            ),
            models.UniqueConstraint(
                fields=["prefix"], condition=models.Q(level=ExtensionLevel.SITE), name="think_extension_of_site"
            ),
        ]
        indexes = [models.Index(fields=["sha256"], name="think_extension_source")]

    def __str__(self) -> str:
        return self.name

    @property
    def revision(self) -> str:
        """The mark of its version and permissions, so that an edit of an older state is noticed. Opaque."""
        return fingerprint([self.pk, self.number, self.granted])


class ExtensionVersion(models.Model):
    """One version of an extension. Versions are only added."""

    extension = models.ForeignKey(
        Extension, verbose_name=_("extension"), on_delete=models.CASCADE, related_name="versions"
    )
    number = models.PositiveIntegerField(_("number"))
    manifest = JSONText()
    source = models.TextField(_("source"))
    sha256 = models.CharField(_("hash of the source"), max_length=64)
    via = models.CharField(_("written by"), max_length=16, choices=ExtensionAuthor.choices)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("author"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(_("written"), auto_now_add=True)

    class Meta:
        app_label = "think_tools"
        verbose_name = _("version of an extension")
        verbose_name_plural = _("versions of extensions")
        constraints = [models.UniqueConstraint(fields=["extension", "number"], name="think_extension_version")]
        indexes = [models.Index(fields=["author", "-created_at"], name="think_extension_author")]

    def __str__(self) -> str:
        return f"{self.extension_id} {self.number}"


class ExtensionCall(models.Model):
    """A call of an extension to its host, made or refused. The newest of each conversation are kept."""

    extension = models.ForeignKey(
        Extension, verbose_name=_("extension"), null=True, blank=True, on_delete=models.SET_NULL, related_name="calls"
    )  # none for one of the agent's class, and once it is unloaded
    name = models.CharField(_("extension"), max_length=64)
    scope = models.CharField(max_length=64)  # opaque: the instance
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    turn_id = models.CharField(max_length=64, blank=True, default="")
    call_id = models.CharField(_("call id"), max_length=128, blank=True, default="")
    during = models.CharField(_("during"), max_length=100)  # the tool or the hook that ran
    method = models.CharField(_("call"), max_length=60)
    subject = models.CharField(_("about"), max_length=300, blank=True, default="")  # a path, an address, a label
    is_refused = models.BooleanField(_("refused"), default=False)
    error = models.CharField(_("error"), max_length=500, blank=True, default="")
    created_at = models.DateTimeField(_("when"), auto_now_add=True)

    class Meta:
        app_label = "think_tools"
        verbose_name = _("call of an extension")
        verbose_name_plural = _("calls of extensions")
        indexes = [models.Index(fields=["scope", "-id"], name="think_extension_calls")]

    def __str__(self) -> str:
        return f"{self.name} {self.method}"


class BannedSource(models.Model):
    """A source that runs nowhere on the site, whatever extension has it, those of agents' classes included."""

    sha256 = models.CharField(_("hash of the source"), max_length=64, unique=True)
    reason = models.CharField(_("reason"), max_length=300, blank=True, default="")
    banned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("disabled by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(_("when"), auto_now_add=True)

    class Meta:
        app_label = "think_tools"
        verbose_name = _("disabled source")
        verbose_name_plural = _("disabled sources")

    def __str__(self) -> str:
        return self.sha256
