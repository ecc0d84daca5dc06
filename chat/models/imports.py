"""Tables of imports: an archive that a person brought, and the conversations that came of it."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id


def new_import_id() -> str:
    """Id of an import."""
    return new_id("arc")


class ArchiveImport(models.Model):
    """An uploaded archive. Its fibers look through it and import it; what they find is written here."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_import_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=255)
    byte_size = models.PositiveBigIntegerField(_("bytes"))
    storage_name = models.CharField(_("name in storage"), max_length=255, blank=True)  # empty once it is not needed
    agent = models.CharField(_("agent"), max_length=200, blank=True, default="")  # route name, once it was confirmed
    scan = models.ForeignKey("think_fibers.Fiber", null=True, on_delete=models.SET_NULL, related_name="+")
    run = models.ForeignKey("think_fibers.Fiber", null=True, on_delete=models.SET_NULL, related_name="+")
    preview = JSONText(_("preview"), null=True, blank=True)
    report = JSONText(_("report"), null=True, blank=True)
    error_text = models.TextField(_("error"), blank=True, default="")
    seen_count = models.PositiveBigIntegerField(_("conversations looked at"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        indexes = [models.Index(fields=["owner", "-created_at"], name="think_import_recent")]

    def __str__(self) -> str:
        return self.name


class ImportedConversation(models.Model):
    """A conversation that came of an archive. One of a product's id is imported once for each owner.

    With the conversation the row goes too: then it can be imported again.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    product = models.CharField(max_length=32)
    source_id = models.CharField(max_length=128)
    instance = models.OneToOneField("think_chat.AgentInstance", on_delete=models.CASCADE, related_name="+")
    archive = models.ForeignKey(
        ArchiveImport, null=True, on_delete=models.SET_NULL, related_name="conversations"
    )  # which brought it
    message_count = models.PositiveBigIntegerField()
    file_count = models.PositiveBigIntegerField(default=0)
    left_out = JSONText(default=dict)  # kinds of what is not shown, and how often

    class Meta:
        verbose_name = _("imported conversation")
        verbose_name_plural = _("imported conversations")
        constraints = [
            models.UniqueConstraint(fields=["owner", "product", "source_id"], name="think_imported_once"),
        ]

    def __str__(self) -> str:
        return f"{self.product}/{self.source_id}"
