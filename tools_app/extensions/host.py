"""The services of the host for extensions, once they may: implemented where conversations are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionPlace:
    """The conversation in which an extension runs, and the call or turn that it runs for."""

    owner_id: int | None
    scope: str
    turn_id: str = ""
    call_id: str = ""


class HostServices(Protocol):
    """One conversation, for its extensions. Nothing here asks about permissions: that has been done."""

    async def workspace(self) -> Workspace:
        """The workspace of the agent. Errors: `ThinkError` where it has none."""

    async def extension_blocks(self) -> Mapping[str, str]:
        """Labels of the context blocks that extensions brought, each with the prefix of its extension.

        One that the agent has of itself is never theirs.
        """

    async def context_blocks(self) -> Mapping[str, str]:
        """Every context block's text by its label."""

    async def write_context(self, label: str, content: str) -> None:
        """Replace the text of a block. Errors: those of context blocks."""

    async def messages(self, limit: int) -> list[JSONObject]:
        """The newest messages, oldest first: `{id, role, content}`."""

    async def send_message(self, extension: str, content: str) -> str:
        """Add a message of an extension's, without a turn; returns its id."""

    async def session_info(self) -> JSONObject:
        """The agent, the conversation's name and the number of its messages."""
