"""Workspaces of scopes: opening, making, attaching, forgetting. The only writers of their rows besides the store.

A scope is an opaque id here: the instance of an agent. Who may open what is decided by the callers.
"""

import re
from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from thinkproject.kernel.phrases import Phrase
from tools_app.core.files.paths import WORKSPACE_NAME
from tools_app.errors import WorkspaceExists, WorkspaceNameInvalid, WorkspaceNotFound
from tools_app.models import FileBackup, StoredWorkspace, WorkspaceAttachment, WorkspaceEntry
from tools_app.workspace import objects
from tools_app.workspace.stores.database import DatabaseWorkspace, ScopeKey

DEFAULT_NAME = "default"
MAX_TITLE = 100


def open_for_scope(scope: str, owner_id: int | None, name: str = DEFAULT_NAME) -> DatabaseWorkspace:
    """The workspace that a scope knows by a name. No query; its row is made by the first write, for this owner.

    Errors: `WorkspaceNameInvalid`.
    """
    return DatabaseWorkspace(ScopeKey(scope=scope, name=checked_name(name), owner_id=owner_id))


def open_workspace(workspace_id: str, *, can_write: bool = True) -> DatabaseWorkspace:
    """A workspace by its id. No query; one that does not exist is empty, and writing to it is `ENOENT`."""
    return DatabaseWorkspace(workspace_id, can_write=can_write)


def create_workspace(owner_id: int | None, name: str = DEFAULT_NAME, *, title: str = "") -> StoredWorkspace:
    """Make a workspace that nothing is attached to. No owner: a shared one. Errors: `WorkspaceNameInvalid`.

    `title`: what people call it, cut to 100 characters.
    """
    return StoredWorkspace.objects.create(owner_id=owner_id, name=checked_name(name), title=_title(title))


def title_workspace(workspace_id: str, title: str) -> bool:
    """Give a workspace another title, cut to 100 characters. False where there is no such workspace."""
    return StoredWorkspace.objects.filter(pk=workspace_id).update(title=_title(title)) > 0


@transaction.atomic
def ensure_for_scope(scope: str, owner_id: int | None, name: str = DEFAULT_NAME) -> StoredWorkspace:
    """The row of the workspace that a scope knows by a name, made where there is none. Errors: as `open_for_scope`."""
    return open_for_scope(scope, owner_id, name).ensure()


@transaction.atomic
def attach(workspace_id: str, scope: str, *, name: str = DEFAULT_NAME, can_write: bool = True) -> WorkspaceAttachment:
    """Let a scope use a workspace under a name; again, to change whether it may write.

    Errors: `WorkspaceNotFound`; `WorkspaceExists` where the scope has another one of this name;
    `WorkspaceNameInvalid`.
    """
    checked_name(name)
    if not _hold([workspace_id]):
        raise WorkspaceNotFound
    link = WorkspaceAttachment.objects.filter(scope=scope, name=name).first()
    if link is None:
        try:
            with transaction.atomic():
                return WorkspaceAttachment.objects.create(
                    workspace_id=workspace_id, scope=scope, name=name, can_write=can_write
                )
        except IntegrityError:  # another attached one meanwhile
            link = WorkspaceAttachment.objects.get(scope=scope, name=name)
    if link.workspace_id != workspace_id:
        raise WorkspaceExists(Phrase("There is a workspace called {name} here already.", name=name))
    if link.can_write != can_write:
        link.can_write = can_write
        link.save(update_fields=["can_write"])
    return link


def detach(workspace_id: str, scope: str) -> bool:
    """End what `attach` began; the workspace stays. False where it was not attached."""
    return WorkspaceAttachment.objects.filter(workspace_id=workspace_id, scope=scope).delete()[0] > 0


@transaction.atomic
def delete_workspace(workspace_id: str) -> bool:
    """Delete a workspace with all in it; the objects of its files after the commit. False where there is none."""
    return _delete(_hold([workspace_id])) > 0


@transaction.atomic
def take_from(workspace_id: str, scopes: Iterable[str]) -> int:
    """Detach one workspace from these scopes, and delete it where nothing else is attached. Returns how many went."""
    return _forget({workspace_id}, WorkspaceAttachment.objects.filter(scope__in=list(scopes)))


@transaction.atomic
def forget_workspaces_of(scopes: Iterable[str]) -> int:
    """Detach all workspaces of these scopes and delete those that nothing else is attached to. Returns how many.

    Call it inside the transaction that deletes what the scopes stand for.
    """
    links = WorkspaceAttachment.objects.filter(scope__in=list(scopes))
    return _forget(set(links.values_list("workspace_id", flat=True)), links)


def _forget(ids: set[str], links: QuerySet[WorkspaceAttachment]) -> int:
    if not ids:
        return 0
    held = _hold(ids)  # before looking who else is attached: `attach` waits for it
    links.filter(workspace_id__in=ids).delete()
    used = set(WorkspaceAttachment.objects.filter(workspace_id__in=held).values_list("workspace_id", flat=True))
    used |= set(StoredWorkspace.objects.filter(pk__in=held).exclude(root="").values_list("pk", flat=True))
    return _delete([each for each in held if each not in used])


def _hold(ids: Iterable[str]) -> list[str]:
    rows = StoredWorkspace.objects.select_for_update().filter(pk__in=list(ids)).order_by("pk")
    return [row.pk for row in rows]


def _delete(ids: list[str]) -> int:
    if not ids:
        return 0
    names: set[str] = set()
    for table in (WorkspaceEntry, FileBackup):
        rows = table.objects.filter(workspace_id__in=ids)
        names.update(rows.exclude(storage_name="").values_list("storage_name", flat=True))
        rows.delete()
    StoredWorkspace.objects.filter(pk__in=ids).delete()
    objects.forget(names)  # copies of a workspace share its objects
    return len(ids)


def _title(title: str) -> str:
    return " ".join(title.split())[:MAX_TITLE]


def checked_name(name: str) -> str:
    """The name of a workspace, if it may be one. Errors: `WorkspaceNameInvalid`."""
    if len(name) > 64 or not re.match(WORKSPACE_NAME, name):
        raise WorkspaceNameInvalid
    return name
