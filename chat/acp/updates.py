"""The updates of a session: chunks as they come, and stored messages again.

A running call is known by its id: the first chunk about it opens it, later ones change it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from acp.helpers import (
    ContentBlock,
    SessionUpdate,
    resource_link_block,
    start_tool_call,
    text_block,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message,
)
from acp.interfaces import Client
from acp.schema import ToolCallStatus

from chat.acp.content import (
    change_of,
    has_failed,
    kind_of,
    locations_of,
    output_content,
    plan_of,
    title_of_call,
)
from chat.agent.base import InstanceKey
from chat.core.wire.chunks import Chunk
from chat.reads.snapshots import current_transcript
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.steered import STEER
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue, load
from tools_app.core.todos import TODO_WRITE

REFUSED: Final = "A person did not allow this call."
_STATUSES: Final[dict[str, ToolCallStatus]] = {
    ToolState.OUTPUT_AVAILABLE: "completed",
    ToolState.OUTPUT_ERROR: "failed",
    ToolState.OUTPUT_DENIED: "failed",
}


@dataclass
class Updates:
    """Sends what is new to the client: a callback of `AgentHandle.chat`. `root`: the directory of the session."""

    client: Client
    key: InstanceKey
    root: str
    _tools: dict[str, str] = field(default_factory=dict)  # of each call that the client knows
    _open: set[str] = field(default_factory=set)  # calls whose end the client does not know

    async def on_event(self, text: str) -> None:
        """Send one chunk."""
        chunk: Chunk = load(text)
        kind = str(chunk["type"])
        if kind == "text-delta" and chunk["delta"]:
            await self.send(update_agent_message_text(chunk["delta"]))
        elif kind == "reasoning-delta" and chunk["delta"]:
            await self.send(update_agent_thought_text(chunk["delta"]))
        elif kind in {"file", "source-url"}:
            await self._link(update_agent_message, chunk["url"], chunk.get("filename") or chunk.get("title"))
        elif kind.startswith("tool-"):
            await self._on_call(kind, chunk)
        elif kind == "start-step":
            await self.settle()

    async def on_reset(self) -> None:
        """Mention that the answer begins again: what was sent cannot be taken back."""
        await self.send(update_agent_thought_text("(the answer begins again)"))

    async def _on_call(self, kind: str, chunk: Chunk) -> None:
        call_id = chunk["toolCallId"]
        if kind == "tool-input-start":
            await self.open(call_id, chunk["toolName"], None)
        elif kind == "tool-input-available":
            await self.open(call_id, chunk["toolName"], chunk["input"], status="in_progress")
        elif kind == "tool-input-error":
            await self.open(call_id, chunk["toolName"], chunk["input"])
            await self._fail(call_id, chunk["errorText"])
        elif kind == "tool-output-available" and not chunk.get("preliminary"):
            await self._end(call_id, chunk["output"])
        elif kind == "tool-output-error":
            await self._fail(call_id, chunk["errorText"])
        elif kind == "tool-output-denied":
            await self._fail(call_id, REFUSED)

    async def open(self, call_id: str, tool: str, given: JSONValue, *, status: ToolCallStatus = "pending") -> None:
        """Have the client know a call and its arguments as far as they are known."""
        self._open.add(call_id)
        facts: dict[str, Any] = {
            "kind": kind_of(tool),
            "status": status,
            "content": change_of(self.root, tool, given) or None,
            "locations": locations_of(self.root, given),
            "raw_input": given,
        }
        title = title_of_call(tool, given)
        if call_id in self._tools:
            await self.send(update_tool_call(call_id, title=title, **facts))
        else:
            self._tools[call_id] = tool
            await self.send(start_tool_call(call_id, title, **facts))

    async def _end(self, call_id: str, output: JSONValue) -> None:
        self._open.discard(call_id)
        tool = self._tools.get(call_id, "")
        status: ToolCallStatus = "failed" if has_failed(output) else "completed"
        # A change stays shown as what it is: its content replaces no diff.
        content = None if kind_of(tool) == "edit" and status == "completed" else output_content(output)
        await self.send(update_tool_call(call_id, status=status, content=content, raw_output=output))
        if tool == TODO_WRITE and status == "completed":
            await self.send(update_plan(plan_of(output)))

    async def _fail(self, call_id: str, text: str) -> None:
        self._open.discard(call_id)
        await self.send(update_tool_call(call_id, status="failed", content=output_content(text), raw_output=text))

    async def settle(self) -> None:
        """Send how calls ended that had to wait for an answer: no chunk says it, their message has changed."""
        if not self._open:
            return
        for message in await db(current_transcript, self.key):
            for part in message["parts"]:
                if part.get("toolCallId") in self._open:
                    await self._settle(part)

    async def _settle(self, part: Part) -> None:
        status = _STATUSES.get(part["state"])
        if status == "completed":
            await self._end(part["toolCallId"], part.get("output"))
        elif status is not None:
            await self._fail(part["toolCallId"], part.get("errorText") or REFUSED)

    async def replay(self, messages: list[Message]) -> None:
        """Send a stored conversation from its beginning."""
        for message in messages:
            for part in message["parts"]:
                if message["role"] == "user":
                    await self._replay_words(part)
                else:
                    await self._replay_part(part)

    async def _replay_words(self, part: Part) -> None:
        if part["type"] == "text":
            await self.send(update_user_message(text_block(part["text"])))
        elif part["type"] == "file":
            await self._link(update_user_message, part["url"], part.get("filename"))

    async def _replay_part(self, part: Part) -> None:
        kind = part["type"]
        if kind == "text":
            await self.send(update_agent_message_text(part["text"]))
        elif kind == "reasoning":
            await self.send(update_agent_thought_text(part["text"]))
        elif kind == STEER:
            for each in part.get("parts", ()):
                await self._replay_words(each)
        elif kind in {"file", "source-url"}:
            await self._link(update_agent_message, part["url"], part.get("filename") or part.get("title"))
        elif "toolCallId" in part:
            await self._replay_call(part)

    async def _replay_call(self, part: Part) -> None:
        tool = part.get("toolName") or part["type"].removeprefix("tool-")
        await self.open(part["toolCallId"], tool, part.get("input"))
        await self._settle(part)

    async def say(self, text: str) -> None:
        """Send words of the product as the agent's."""
        await self.send(update_agent_message_text(text))

    async def _link(self, update: Callable[[ContentBlock], SessionUpdate], url: str, name: str | None) -> None:
        """Name a file; its bytes stay where they are."""
        shown = name or ("file" if url.startswith("data:") else url)
        await self.send(update(resource_link_block(shown, url if not url.startswith("data:") else f"file:{shown}")))

    async def send(self, update: SessionUpdate) -> None:
        """Send one update."""
        await self.client.session_update(self.key.name, update)
