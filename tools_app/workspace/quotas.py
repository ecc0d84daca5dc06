"""Room for the files of one user, over all workspaces. Checked in the transaction that writes."""

from dataclasses import dataclass

from django.db.models import F

from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.errors import FileFailed
from tools_app.models import StoredWorkspace
from tools_app.workspace.conf import workspace_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceUsage:
    """Room taken by the workspaces of a user. `entry_count`: files, directories and links; roots are not counted."""

    workspace_count: int
    entry_count: int
    byte_count: int


def usage(owner_id: int) -> WorkspaceUsage:
    """Room taken by a user. One query over one row for each workspace."""
    rows = StoredWorkspace.objects.filter(owner_id=owner_id).values_list(
        F("file_count") + F("directory_count") + F("link_count") - 1, "byte_count"
    )
    found = list(rows)
    return WorkspaceUsage(
        workspace_count=len(found), entry_count=sum(row[0] for row in found), byte_count=sum(row[1] for row in found)
    )


def check_room(owner_id: int | None, *, byte_count: int, entry_count: int) -> None:
    """Look whether there is room for so much more, and keep others of the same user out until the transaction ends.

    Errors: `FileFailed` with `ENOSPC`. Shared workspaces have no quota. What frees room is never refused.
    """
    quota, most = workspace_settings.quota_bytes, workspace_settings.quota_entries
    grows = (byte_count > 0 and quota) or (entry_count > 0 and most)
    if owner_id is None or not grows:
        return
    lock_owner(owner_id)
    taken = usage(owner_id)
    if quota and byte_count > 0 and taken.byte_count + byte_count > quota:
        raise FileFailed(
            Phrase("ENOSPC: your files may have {limit} MiB in all. Delete some first.", limit=quota // (1024 * 1024)),
            errno="ENOSPC",
            limit=quota,
        )
    if most and entry_count > 0 and taken.entry_count + entry_count > most:
        raise FileFailed(
            Phrase("ENOSPC: you can keep {limit} files and directories. Delete some first.", limit=most),
            errno="ENOSPC",
            limit=most,
        )
