"""The `Host` of agent objects: the same rows for web processes and for workers."""

from django.db import transaction
from django.db.models import F

from chat.agent import InstanceKey
from chat.conf import chat_settings
from chat.doorbell import group_of, ring_on_commit
from chat.instance_rows import ensure_instance, find_instance
from chat.models import AgentInstance
from sessions_app import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


class DatabaseHost:
    """Reads and writes the instance's row; makes the row on the first write."""

    def __init__(self, key: InstanceKey) -> None:
        self.key = key

    async def load_state(self) -> JSONValue:
        """Give the stored state, or `None`."""
        return await db(_load_column, self.key, "state")

    async def save_state(self, value: JSONValue) -> None:
        """Store the state under the next version; the doorbell carries the version."""
        await db(_save_state, self.key, value)

    async def load_config(self) -> JSONValue:
        """Give the stored configuration, or `None`."""
        return await db(_load_column, self.key, "config")

    async def save_config(self, value: JSONValue) -> None:
        """Store the configuration."""
        await db(_save_config, self.key, value)

    async def messages(self) -> list[JSONObject]:
        """Read the shown path of the current session."""
        return await db(_messages, self.key)


def _load_column(key: InstanceKey, column: str) -> JSONValue:
    instance = find_instance(key)
    return None if instance is None else getattr(instance, column)


@transaction.atomic
def _save_state(key: InstanceKey, value: JSONValue) -> None:
    instance = ensure_instance(key)
    AgentInstance.objects.filter(pk=instance.pk).update(state=value, state_version=F("state_version") + 1)
    instance.refresh_from_db(fields=["state_version"])
    ring_on_commit(group_of(key), {"type": "state.changed", "version": instance.state_version})


@transaction.atomic
def _save_config(key: InstanceKey, value: JSONValue) -> None:
    AgentInstance.objects.filter(pk=ensure_instance(key).pk).update(config=value)


def _messages(key: InstanceKey) -> list[JSONObject]:
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return []
    found = selectors.window(
        instance.session_id, max_messages=chat_settings.history_messages, max_bytes=chat_settings.history_bytes
    )
    return [message.to_ui() for message in found if message.placed]
