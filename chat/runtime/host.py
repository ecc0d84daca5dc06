"""The `Host` of agent objects: the same rows for web processes and for workers."""

from typing import Any

from chat.agent.base import Agent, InstanceKey
from chat.conf import chat_settings
from chat.core.model.chosen_model import ChosenModel
from chat.instances.config import load_config, save_config
from chat.instances.model_choice import load_choice
from chat.instances.rows import find_instance
from chat.instances.workspaces import InstanceWorkspace
from chat.runtime.state import change_state
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.services import DEFAULT_NAME


class DatabaseHost:
    """Reads and writes the instance's row; makes the row on the first write."""

    def __init__(self, key: InstanceKey) -> None:
        self.key = key
        self.turn_id = ""

    async def load_state(self, default: JSONValue = None) -> JSONValue:
        """Give the stored state, or the default when none was ever stored."""
        return await db(_load_state, self.key, default)

    async def change_state(self, agent: Agent, value: JSONValue) -> None:
        """Validate, store and send a state that the agent sets."""
        await change_state(agent, value, "server")

    async def load_config(self) -> Any:
        """Give the stored configuration as its class types it, or `None`."""
        return await db(load_config, self.key)

    async def save_config(self, value: Any) -> None:
        """Check and store the configuration."""
        await db(save_config, self.key, value)

    async def load_model_choice(self) -> ChosenModel:
        """Read the stored choice of a model."""
        return await db(load_choice, self.key)

    def open_workspace(self, name: str = DEFAULT_NAME) -> Workspace:
        """Open a workspace of the instance; within a turn, as that turn works on it."""
        return InstanceWorkspace(self.key, name=name).in_turn(self.turn_id)

    async def messages(self) -> list[Message]:
        """Read the shown path of the current session."""
        return await db(_messages, self.key)


def _load_state(key: InstanceKey, default: JSONValue) -> JSONValue:
    instance = find_instance(key)
    return default if instance is None or instance.state_version == 0 else instance.state


def _messages(key: InstanceKey) -> list[Message]:
    instance = find_instance(key)
    if instance is None or instance.session_id is None:
        return []
    found = selectors.window(
        instance.session_id, max_messages=chat_settings.history_messages, max_bytes=chat_settings.history_bytes
    )
    return [message.to_ui() for message in found if message.placed]
