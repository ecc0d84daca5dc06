"""Copies of whole workspaces, for conversations that branch off."""

from django.db import models, transaction
from django.db.models import F, Value

from tools_app.models import StoredWorkspace, WorkspaceAttachment, WorkspaceEntry, new_workspace_id
from tools_app.workspace.quotas import check_room
from tools_app.workspace.stores.inserting import insert_from

_TOTALS = ("file_count", "directory_count", "link_count", "byte_count", "object_count", "version")
_OWN = {"id", "workspace_id"}


@transaction.atomic
def copy_workspaces(source_scope: str, target_scope: str, owner_id: int | None) -> int:
    """Give a scope copies of the workspaces of another one, under the same names. Returns how many.

    A workspace that the source may only read, or that is not of this owner, is attached to both instead. The target has
    no workspaces of these names yet. Durable with the surrounding transaction. Errors: `FileFailed` with `ENOSPC`.
    """
    links = WorkspaceAttachment.objects.filter(scope=source_scope).order_by("workspace_id", "pk")
    copies: dict[str, str] = {}
    for link in links.select_related("workspace").select_for_update(of=("workspace",), no_key=True):
        row = link.workspace
        if link.can_write and row.owner_id == owner_id and row.pk not in copies:
            copies[row.pk] = _copied(row)
        WorkspaceAttachment.objects.create(
            workspace_id=copies.get(row.pk, row.pk), scope=target_scope, name=link.name, can_write=link.can_write
        )
    return len(copies)


def _copied(row: StoredWorkspace) -> str:
    """The id of a copy of a workspace whose row is locked: one INSERT from a SELECT. Large files share their object."""
    check_room(
        row.owner_id,
        byte_count=row.byte_count,
        entry_count=row.file_count + row.directory_count + row.link_count - 1,
    )
    made = StoredWorkspace.objects.create(
        pk=new_workspace_id(),
        owner_id=row.owner_id,
        name=row.name,
        **{name: getattr(row, name) for name in _TOTALS},
    )
    same = [field.attname for field in WorkspaceEntry._meta.concrete_fields if field.attname not in _OWN]
    insert_from(
        WorkspaceEntry.objects.filter(workspace_id=row.pk),
        WorkspaceEntry,
        {"workspace_id": Value(made.pk, models.CharField()), **{name: F(name) for name in same}},
    )
    return made.pk
