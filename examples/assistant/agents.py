"""A personal assistant: one person has many chats with it, which share files, memory and MCP servers."""

import shutil

from django.core.files.storage import default_storage

from chat.think import McpServerSpec, SessionSetup, Think
from chat.tools.files import StorageWorkspace

INSTRUCTIONS = """\
You are the assistant of one person, who talks to you in several chats. The files and what you remember are the same in
all of them. Keep what has to last in files, and what you learn about the person in your memory.
"""


class PersonalAssistant(Think):
    """An assistant whose chats share what they have."""

    title = "Personal assistant"
    description = "Remembers you and keeps your files, in all your chats."
    icon = "people"
    suggestions = ("Remember that I live in Leipzig", "Write a packing list for a weekend into /packing.md")

    def get_model(self) -> str:
        """Let configuration choose."""
        return "default"

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        """Begin with the instructions, then what is remembered: `with_memory` is of the person, not of the chat."""
        return session.with_context("instructions", provider=INSTRUCTIONS.strip()).with_memory(max_tokens=1000)

    def get_workspace(self) -> StorageWorkspace | None:
        """Work on the person's files in every chat. They belong to no chat, so no deletion of one takes them along."""
        owner_id = self.key.owner_id
        return StorageWorkspace(default_storage, f"assistant/{owner_id}") if owner_id is not None else None

    def get_mcp_servers(self) -> list[McpServerSpec]:
        """Offer a clock where its program is installed; people add servers of their own on the page."""
        program = shutil.which("mcp-server-time")
        return [McpServerSpec(name="clock", command=[program], is_trusted=True)] if program else []
