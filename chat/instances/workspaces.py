"""The workspace that each instance of an agent has."""

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance, find_instance
from tools_app.workspace.services import DEFAULT_NAME
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
