"""The services of extensions: one conversation as they may use it.

Permissions are decided before (`tools_app/extensions/bridge.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from chat.agent.think import Think
from chat.user_code.workspace import workspace_of
from sessions_app.core.messages.shapes import Message, NewMessage
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.workspace import Workspace


@dataclass(frozen=True, slots=True)
class AgentServices:
    """The conversation of an agent object."""

    agent: Think

    async def workspace(self) -> Workspace:
        """The workspace of the agent. Errors: `WorkspaceMissing`."""
        return await workspace_of(self.agent)

    async def extension_blocks(self) -> Mapping[str, str]:
        """Labels of the blocks that extensions brought, each with the prefix of its extension."""
        await self.agent.instance.open_context()
        return self.agent.instance.extension_state.labels

    async def context_blocks(self) -> Mapping[str, str]:
        """Every context block's text by its label."""
        context = await self.agent.instance.open_context()
        return {block.label: block.content for block in await context.blocks()}

    async def write_context(self, label: str, content: str) -> None:
        """Replace the text of a block."""
        await (await self.agent.instance.open_context()).replace(label, content)

    async def messages(self, limit: int) -> list[JSONObject]:
        """The newest messages, oldest first."""
        found = (await self.agent.instance.sessions.shown())[-limit:]
        return [{"id": each["id"], "role": each["role"], "content": _text(each)} for each in found]

    async def send_message(self, extension: str, content: str) -> str:
        """Add a message under the extension's name, without a turn."""
        message: NewMessage = {
            "role": "user",
            "parts": [{"type": "text", "text": content}],
            "metadata": {"extension": extension},
        }
        ids = await self.agent.instance.turns.add_messages([message])
        return ids[0]

    async def session_info(self) -> JSONObject:
        """The agent, the conversation's name and the number of its messages."""
        key = self.agent.key
        return {
            "agent": key.agent,
            "name": key.name,
            "messageCount": await self.agent.instance.sessions.count_messages(),
        }


def _text(message: Message) -> str:
    return "".join(str(part.get("text", "")) for part in message["parts"] if part.get("type") == "text")
