"""Lists of workspaces with their sizes, from totals in their rows: no file is counted."""

import io
from collections.abc import Iterable
from typing import IO

from django.db.models import QuerySet

from tools_app.models import StoredWorkspace, WorkspaceAttachment, WorkspaceEntry
from tools_app.workspace.objects import open_object


def workspaces_of(owner_id: int) -> QuerySet[StoredWorkspace]:
    """A user's workspaces, lately changed ones first."""
    return StoredWorkspace.objects.filter(owner_id=owner_id).order_by("-modified_at", "pk")


def all_workspaces() -> QuerySet[StoredWorkspace]:
    """Every workspace, lately changed ones first."""
    return StoredWorkspace.objects.order_by("-modified_at", "pk")


def attachments_of(scopes: Iterable[str]) -> QuerySet[WorkspaceAttachment]:
    """Attachments of some scopes, each with its workspace."""
    rows = WorkspaceAttachment.objects.filter(scope__in=list(scopes))
    return rows.select_related("workspace").order_by("scope", "name")


def entries_of(workspace_id: str) -> QuerySet[WorkspaceEntry]:
    """The entries of a workspace by path, without their contents."""
    return WorkspaceEntry.objects.filter(workspace_id=workspace_id).defer("content").order_by("path_key")


def open_entry(row: WorkspaceEntry) -> IO[bytes]:
    """The bytes of a file. One whose object is lost reads as empty."""
    if row.storage_name:
        return open_object(row.storage_name) or io.BytesIO()
    return io.BytesIO(bytes(row.content or b""))
