"""The workspace that each instance of an agent has, and those of others that it may use."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance, find_instance
from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.core.origins import Origin
from tools_app.errors import WorkspaceNotFound
from tools_app.models import StoredWorkspace, WorkspaceAttachment
from tools_app.workspace.services import DEFAULT_NAME, attach, detach, ensure_for_scope
from tools_app.workspace.stores.database import DatabaseWorkspace, ScopeKey
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.planning import Plan
from tools_app.workspace.stores.tree import StoredContent, Tree

T = TypeVar("T")


class _OnDisk(Exception):
    """The files to be changed are in a directory: nothing of the transaction is needed."""

    def __init__(self, directory: DirectoryWorkspace) -> None:
        super().__init__()
        self.directory = directory


class InstanceWorkspace(DatabaseWorkspace):
    """The workspace of an instance. Made without a query; the first write makes the instance's row, too.

    Where a directory of the machine was attached (`attach_directory`), its files are those.
    """

    def __init__(self, key: InstanceKey, *, instance_id: str | None = None, name: str = DEFAULT_NAME) -> None:
        """`instance_id`: where it is known already."""
        super().__init__(ScopeKey(scope=instance_id or "", name=name, owner_id=key.owner_id))
        self._instance_key = key
        self._name = name

    def _resolve(self, *, is_writing: bool) -> ScopeKey | None:
        assert isinstance(self._key, ScopeKey)
        if self._key.scope:
            return self._key
        instance = ensure_instance(self._instance_key) if is_writing else find_instance(self._instance_key)
        if instance is None:
            return None
        found = ScopeKey(scope=instance.pk, name=self._name, owner_id=instance.owner_id)
        if not transaction.get_connection().in_atomic_block:  # a row that is made in one may be gone again
            self._key = found
        return found

    def change_now(self, steps: Callable[[Plan], T]) -> T:
        """As of the workspace in the database, or of the directory."""
        try:
            return super().change_now(steps)
        except _OnDisk as found:
            return found.directory.change_now(steps)

    def _read(self, row: StoredWorkspace | None, work: Callable[[Tree], T]) -> T:
        self.foreign = Origin.FILE if row is not None and row.root else None
        if row is None or not row.root:
            return super()._read(row, work)
        return DirectoryWorkspace(row.root).read_now(work)

    def _write(self, row: StoredWorkspace | None, can_write: bool, work: Callable[[Tree], T]) -> T:
        if row is None or not row.root:
            return super()._write(row, can_write, work)
        if not can_write:
            raise failed("EPERM", "/", "this workspace can only be read here")
        raise _OnDisk(DirectoryWorkspace(row.root).in_turn(self._turn_id))

    async def directory(self) -> DirectoryWorkspace | None:
        """The directory of this machine whose files these are; `None` where none was attached."""
        row, _ = await db(self._find)
        return DirectoryWorkspace(row.root) if row is not None and row.root else None

    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:
        try:
            return await super()._writing(work, contents)
        except _OnDisk as found:  # what is kept of its files is committed before they are touched
            return await found.directory._writing(work, contents)


@transaction.atomic
def attach_directory(key: InstanceKey, directory: Path) -> None:
    """Make a directory of this machine the workspace of a conversation, in place of another directory.

    For those who have a shell here: all who work on the conversation work on these files. Durable when it returns.
    Errors: `WorkspaceExists` where the conversation has files in the database.
    """
    row, _ = StoredWorkspace.objects.get_or_create(root=str(directory.resolve()))
    scope = ensure_instance(key).pk
    others = WorkspaceAttachment.objects.filter(scope=scope, name=DEFAULT_NAME).exclude(workspace__in=[row.pk])
    others.exclude(workspace__root="").delete()
    attach(row.pk, scope)


def directories_of(scopes: Sequence[str]) -> dict[str, str]:
    """The directories that are the workspaces of these instances, by the id of the instance."""
    links = WorkspaceAttachment.objects.filter(scope__in=scopes, name=DEFAULT_NAME).exclude(workspace__root="")
    return dict(links.values_list("scope", "workspace__root"))


@transaction.atomic
def attach_workspace(key: InstanceKey, other: InstanceKey | str, *, name: str, can_write: bool) -> str:
    """Let an instance use the workspace of another one, or one by its id; returns the id.

    Errors: `WorkspaceNotFound` for one that is neither its owner's nor shared, `WorkspaceExists`,
    `WorkspaceNameInvalid`.
    """
    if isinstance(other, str):
        row = StoredWorkspace.objects.filter(pk=other, root="").first()
    elif other.owner_id != key.owner_id:
        row = None
    else:
        row = ensure_for_scope(ensure_instance(other).pk, key.owner_id, name)
    if row is None or row.owner_id not in {None, key.owner_id}:
        raise WorkspaceNotFound
    attach(row.pk, ensure_instance(key).pk, name=name, can_write=can_write)
    return row.pk


def detach_workspace(key: InstanceKey, workspace_id: str) -> bool:
    """End what `attach_workspace` began."""
    instance = find_instance(key)
    return instance is not None and detach(workspace_id, instance.pk)
