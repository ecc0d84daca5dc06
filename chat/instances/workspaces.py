"""The workspace that each instance of an agent has, and those of others that it may use."""

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance, find_instance
from tools_app.errors import WorkspaceNotFound
from tools_app.models import StoredWorkspace
from tools_app.workspace.services import DEFAULT_NAME, attach, detach, ensure_for_scope
from tools_app.workspace.stores.database import DatabaseWorkspace, ScopeKey


class InstanceWorkspace(DatabaseWorkspace):
    """The workspace of an instance. Made without a query; the first write makes the instance's row, too."""

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


@transaction.atomic
def attach_workspace(key: InstanceKey, other: InstanceKey | str, *, name: str, can_write: bool) -> str:
    """Let an instance use the workspace of another one, or one by its id; returns the id.

    Errors: `WorkspaceNotFound` for one that is neither its owner's nor shared, `WorkspaceExists`,
    `WorkspaceNameInvalid`.
    """
    if isinstance(other, str):
        row = StoredWorkspace.objects.filter(pk=other).first()
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
