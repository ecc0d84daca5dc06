"""Tables of workspaces: their entries, who has them attached, files as they were before a turn."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import CodePointText
from thinkproject.kernel.ids import new_id
from tools_app.core.files.paths import WORKSPACE_NAME
from tools_app.core.files.workspace import EntryKind
from tools_app.core.origins import UNTRUSTED


def new_workspace_id() -> str:
    """Id of a workspace."""
    return new_id("wsp")


class StoredWorkspace(models.Model):
    """A workspace in the database. Its row is the lock of all writers, and has the totals of its entries."""

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_workspace_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )  # whose quota it counts for; none: shared
    name = models.CharField(_("name"), max_length=64, default="default", validators=[RegexValidator(WORKSPACE_NAME)])
    title = models.CharField(_("title"), max_length=100, blank=True, default="")  # free text, for people
    root = models.CharField(max_length=4096, blank=True, default="")  # of a directory on the disk: it has backups alone
    file_count = models.PositiveBigIntegerField(default=0)
    directory_count = models.PositiveBigIntegerField(_("directories"), default=1)  # the root is one
    link_count = models.PositiveBigIntegerField(default=0)
    byte_count = models.PositiveBigIntegerField(default=0)
    object_count = models.PositiveBigIntegerField(default=0)  # files whose bytes are in storage
    version = models.PositiveBigIntegerField(_("version"), default=0)  # counts the operations that changed something
    kept_turn_id = models.CharField(max_length=64, blank=True, default="")  # the turn that had files kept last
    kept_bytes = models.PositiveBigIntegerField(default=0)  # of files kept for it, at most
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    modified_at = models.DateTimeField(_("changed"), auto_now_add=True)

    class Meta:
        db_table = "think_tools_workspace"
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")
        constraints = [
            models.UniqueConstraint(fields=["root"], condition=~models.Q(root=""), name="think_workspace_root")
        ]
        indexes = [models.Index(fields=["-modified_at"], name="think_workspace_recent")]

    def __str__(self) -> str:
        return f"{self.title or self.name} {self.id}"


class WorkspaceEntry(models.Model):
    """A file, directory or link of a workspace; the root has no row.

    `path_key` and `parent_key` stand for the path and the directory's path in indexes, which cannot hold long ones
    (`tools_app.workspace.stores.keys`).
    """

    workspace = models.ForeignKey(
        StoredWorkspace, verbose_name=_("workspace"), on_delete=models.CASCADE, related_name="entries", db_index=False
    )
    path = CodePointText(_("path"), max_length=4096)
    path_key = CodePointText(max_length=400)
    parent_key = CodePointText(max_length=400)
    name = CodePointText(max_length=255)
    kind = CodePointText(max_length=16, choices=[(kind.value, kind.value) for kind in EntryKind])
    media_type = models.CharField(max_length=255, blank=True, default="")
    size = models.PositiveBigIntegerField(default=0)
    version = models.PositiveBigIntegerField(_("version"))  # of the workspace when the content was written
    target = models.CharField(max_length=4096, blank=True, default="")
    storage_name = models.CharField(
        _("name in storage"), max_length=255, blank=True, default=""
    )  # copies share an object
    created_at = models.DateTimeField(_("created"))
    modified_at = models.DateTimeField(_("changed"))
    origin = models.CharField(
        max_length=8, blank=True, default="", choices=[(each.value, each.value) for each in sorted(UNTRUSTED)]
    )  # of the content, where strangers may have written it
    content = models.BinaryField(null=True)  # of a file that is not in storage

    class Meta:
        verbose_name = _("workspace entry")
        verbose_name_plural = _("workspace entries")
        constraints = [models.UniqueConstraint(fields=["workspace", "path_key"], name="think_workspace_path")]
        indexes = [
            models.Index(fields=["workspace", "parent_key", "kind", "name"], name="think_workspace_children"),
            models.Index(fields=["storage_name"], condition=~models.Q(storage_name=""), name="think_workspace_object"),
        ]

    def __str__(self) -> str:
        return str(self.path)


class WorkspaceAttachment(models.Model):
    """The use of a workspace by a scope, under a name of its own: one workspace may serve several."""

    workspace = models.ForeignKey(StoredWorkspace, on_delete=models.CASCADE, related_name="attachments")
    scope = models.CharField(max_length=64)  # opaque here: the instance of an agent
    name = models.CharField(_("name"), max_length=64, default="default", validators=[RegexValidator(WORKSPACE_NAME)])
    can_write = models.BooleanField(_("may write"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("attached workspace")
        verbose_name_plural = _("attached workspaces")
        constraints = [models.UniqueConstraint(fields=["scope", "name"], name="think_workspace_scope")]

    def __str__(self) -> str:
        return f"{self.scope} {self.name}"


class FileBackup(models.Model):
    """An entry of a workspace as it was before a step of a turn changed it, for the first time in that step.

    The rows of a path are its history: where `version_before` is not the former row's `version_after`, another hand
    changed it in between. What people replace of a turn's work is kept, too, without a turn. Goes with its workspace,
    with its turn, and after `THINK_WORKSPACE_BACKUP_DAYS`.
    """

    workspace = models.ForeignKey(StoredWorkspace, on_delete=models.CASCADE, related_name="backups", db_index=False)
    turn_id = models.CharField(max_length=64)  # opaque here: a turn or an undo; empty: people
    step = models.PositiveBigIntegerField(default=0)  # of the turn, from 0; for people the workspace's version
    path = CodePointText(max_length=4096)
    path_key = CodePointText(max_length=400)
    kind = CodePointText(max_length=16, blank=True, default="")  # of the entry; empty: there was none
    media_type = models.CharField(max_length=255, blank=True, default="")
    size = models.PositiveBigIntegerField(default=0)
    target = models.CharField(max_length=4096, blank=True, default="")
    storage_name = models.CharField(max_length=255, blank=True, default="")  # kept by reference
    origin = models.CharField(max_length=8, blank=True, default="")
    content = models.BinaryField(null=True)
    is_cut = models.BooleanField(default=False)  # one turn may not keep so much
    version_before = models.PositiveBigIntegerField(null=True)  # 0: there was none; none: not known
    version_after = models.PositiveBigIntegerField(null=True)  # of what the step left there; 0: nothing
    kind_after = CodePointText(max_length=16, blank=True, default="")  # of that; empty: nothing
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("file before a turn")
        verbose_name_plural = _("files before turns")
        constraints = [
            models.UniqueConstraint(fields=["turn_id", "workspace", "path_key", "step"], name="think_file_backup")
        ]
        indexes = [
            models.Index(fields=["workspace", "path_key"], name="think_file_backup_path"),
            models.Index(fields=["created_at"], name="think_file_backup_age"),
            models.Index(
                fields=["storage_name"], condition=~models.Q(storage_name=""), name="think_file_backup_object"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.path} {self.turn_id}"
