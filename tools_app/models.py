"""Tables of tools: calls, append-only events for requests and decisions, and workspaces with their entries."""

from typing import Any, NoReturn

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import CodePointText, JSONText
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.action_models import ActionRecord
from tools_app.core.files.paths import WORKSPACE_NAME
from tools_app.core.files.workspace import EntryKind
from tools_app.core.origins import UNTRUSTED
from tools_app.core.tool_calls import OPEN, CallStatus
from tools_app.execution_models import Execution, ExecutionCall
from tools_app.extension_models import BannedSource, Extension, ExtensionCall, ExtensionVersion
from tools_app.guard_models import Guard, GuardEvent
from tools_app.mcp_models import McpServer, McpSignIn

__all__ = [
    "ActionRecord",
    "ApprovalEvent",
    "ApprovalEventKind",
    "BannedSource",
    "Execution",
    "ExecutionCall",
    "Extension",
    "ExtensionCall",
    "ExtensionVersion",
    "Guard",
    "GuardEvent",
    "McpServer",
    "McpSignIn",
    "ToolCallRecord",
]


class ToolCallRecord(models.Model):
    """One tool call of one turn. Who claims it, and when, decides where it runs; its first result is its result."""

    turn_id = models.CharField(max_length=64)  # opaque here
    scope = models.CharField(max_length=64, blank=True, default="")  # opaque: where open calls are looked for
    call_id = models.CharField(_("call id"), max_length=128)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
    )
    tool_name = models.CharField(_("tool"), max_length=64)
    input = JSONText(default=dict)
    status = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in CallStatus], default=CallStatus.RUNNING
    )
    output = JSONText(null=True, blank=True)
    details = JSONText(null=True, blank=True)  # besides the output: `tools_app.core.tool_calls.details_of`
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    duration_ms = models.PositiveIntegerField(default=0)
    approval_id = models.CharField(
        _("approval id"), max_length=128, blank=True, default=""
    )  # set when a person was asked
    question = JSONText(null=True, blank=True)  # what that person was asked: `tools_app.core.questions.Question`
    edited_input = JSONText(null=True, blank=True)  # the arguments that run instead, where the decision changed them
    wait_key = models.CharField(max_length=150, blank=True, default="")  # of the parked turn that its decision wakes:
    # set for a call that another call makes, as code does. Such a call is no part of a message.
    continues = models.BooleanField(_("goes on by itself"), default=False)  # its answer asked for that
    lasting = models.BooleanField(_("stays open"), default=False)  # its question, when the conversation goes on
    expires_at = models.DateTimeField(
        _("expires"), null=True, blank=True
    )  # of the question; afterwards it counts as denied
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    settled_at = models.DateTimeField(_("settled"), null=True, blank=True)

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        constraints = [models.UniqueConstraint(fields=["turn_id", "call_id"], name="think_tool_call")]
        indexes = [
            models.Index(fields=["-created_at"], name="think_tool_call_recent"),
            models.Index(fields=["scope"], condition=models.Q(status__in=sorted(OPEN)), name="think_tool_call_open"),
            models.Index(
                fields=["owner", "-id"], condition=models.Q(status=CallStatus.ASKED), name="think_tool_call_asked"
            ),
            models.Index(
                fields=["expires_at"],
                condition=models.Q(status=CallStatus.ASKED, expires_at__isnull=False),
                name="think_tool_call_expiring",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.call_id}"

    @property
    def input_to_run(self) -> JSONObject:
        """The arguments that the call runs with: those of the model, or what a person made of them."""
        arguments: JSONObject = self.input if self.edited_input is None else self.edited_input
        return arguments


class ApprovalEventKind(models.TextChoices):
    """The kind of an audit event."""

    ASKED = "asked", _("Asked")
    APPROVED = "approved", _("Approved")
    DENIED = "denied", _("Denied")
    EXPIRED = "expired", _("Expired")
    SUPERSEDED = "superseded", _("Not answered")  # the conversation went on without an answer


class ApprovalEvent(models.Model):
    """Something that happened to a question: added, never changed. Deleted only with its call."""

    call = models.ForeignKey(ToolCallRecord, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(_("event"), max_length=16, choices=ApprovalEventKind.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )  # none: the product itself
    via = models.CharField(_("via"), max_length=16)  # the way it came in: socket, api, admin, server, turn
    reason = models.CharField(_("reason"), max_length=1000, blank=True, default="")
    input_hash = models.CharField(_("hash of the arguments"), max_length=64)  # of the arguments that were asked about
    edited_input = JSONText(null=True, blank=True)  # of an approval that changed them
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.call_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a new event. Errors: `TypeError` for an existing one."""
        if not self._state.adding:
            raise TypeError("Approval events are added and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse. Errors: `TypeError`, always."""
        raise TypeError("Approval events are added and never deleted.")


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
    file_count = models.PositiveBigIntegerField(default=0)
    directory_count = models.PositiveBigIntegerField(_("directories"), default=1)  # the root is one
    link_count = models.PositiveBigIntegerField(default=0)
    byte_count = models.PositiveBigIntegerField(default=0)
    object_count = models.PositiveBigIntegerField(default=0)  # files whose bytes are in storage
    version = models.PositiveBigIntegerField(_("version"), default=0)  # counts the operations that changed something
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    modified_at = models.DateTimeField(_("changed"), auto_now_add=True)

    class Meta:
        db_table = "think_tools_workspace"
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")
        indexes = [models.Index(fields=["-modified_at"], name="think_workspace_recent")]

    def __str__(self) -> str:
        return f"{self.name} {self.id}"


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
    """A file of a workspace as it was before a turn changed it, for the first time in that turn.

    Goes with its workspace and with its turn, and after `THINK_WORKSPACE_BACKUP_DAYS`.
    """

    workspace = models.ForeignKey(StoredWorkspace, on_delete=models.CASCADE, related_name="backups", db_index=False)
    turn_id = models.CharField(max_length=64)  # opaque here
    path = CodePointText(max_length=4096)
    path_key = CodePointText(max_length=400)
    is_new = models.BooleanField(default=False)  # there was no such file
    size = models.PositiveBigIntegerField(default=0)
    content = models.BinaryField(null=True)
    is_cut = models.BooleanField(default=False)  # it was too large to be kept
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("file before a turn")
        verbose_name_plural = _("files before turns")
        constraints = [models.UniqueConstraint(fields=["turn_id", "workspace", "path_key"], name="think_file_backup")]
        indexes = [
            models.Index(fields=["workspace", "path_key"], name="think_file_backup_path"),
            models.Index(fields=["created_at"], name="think_file_backup_age"),
        ]

    def __str__(self) -> str:
        return f"{self.path} {self.turn_id}"
