"""Lists of workspaces with their sizes, from totals in their rows: no file is counted."""

import io
from typing import IO, Final

from django.db.models import QuerySet

from tools_app.models import WorkspaceEntry
from tools_app.workspace.objects import open_object

HAS_FILES: Final = (
    "EXISTS (SELECT 1 FROM think_tools_workspaceattachment f JOIN think_tools_workspace w ON w.id = f.workspace_id "
    "WHERE f.scope = :scope: AND f.name = 'default' AND w.file_count > 0)"
)
"""Whether the own workspace of a scope has any file, as part of another statement."""


def entries_of(workspace_id: str) -> QuerySet[WorkspaceEntry]:
    """The entries of a workspace by path, without their contents."""
    return WorkspaceEntry.objects.filter(workspace_id=workspace_id).defer("content").order_by("path_key")


def open_entry(row: WorkspaceEntry) -> IO[bytes]:
    """The bytes of a file. One whose object is lost reads as empty."""
    if row.storage_name:
        return open_object(row.storage_name) or io.BytesIO()
    return io.BytesIO(bytes(row.content or b""))
