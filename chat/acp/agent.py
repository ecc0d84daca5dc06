"""The agent's side of the Agent Client Protocol, version 1, for one person and one agent class.

A session is a conversation, its id the conversation's name; its working directory is the workspace, where the class
does not choose another. Whatever a client asks is what the person may ask anywhere. Not offered, as optional methods:
signing in (the command has a person), modes, forks, and terminals and files of the client: commands and files stay
behind the walls, rules and undo of this side.
Source: agentclientprotocol.com, "Protocol" (version 1, schema 1.19).
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import ContentBlock, update_available_commands
from acp.interfaces import Client
from acp.schema import (
    AcpMcpServer,
    AgentCapabilities,
    AuthenticateResponse,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SseMcpServer,
)

from chat.acp.session import COMMANDS, EditorSession
from chat.acp.updates import Updates
from chat.agent.base import InstanceKey
from chat.errors import InputInvalid
from chat.instance.handle import AgentHandle
from chat.instances.addresses import is_root_name
from chat.instances.rows import find_instance
from chat.instances.workspaces import attach_directory, directories_of
from chat.models import AgentInstance
from chat.reads.snapshots import current_transcript
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id

logger = logging.getLogger(__name__)
PAGE: Final = 50
McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


@dataclass
class EditorAgent:
    """Answers one client. `key`: of any conversation of the person with the agent class; its name does not matter."""

    key: InstanceKey
    version: str

    def __post_init__(self) -> None:
        """Begin without sessions."""
        self._client: Client | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """Keep the way to the client."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_more: Any) -> InitializeResponse:  # noqa: ARG002 - one is known
        """Say what is offered; the client leaves where it does not know the version."""
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(list=SessionListCapabilities()),
            ),
            auth_methods=[],
            agent_info=Implementation(name=self.key.agent, title=self.key.agent, version=self.version),
        )

    async def authenticate(self, method_id: str, **_more: Any) -> AuthenticateResponse | None:
        """Refuse: there is no way to sign in, and no need."""
        raise RequestError.invalid_params({"details": f"There is no way to sign in called {method_id!r}."})

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[McpServer] | None = None, **_more: Any
    ) -> NewSessionResponse:
        """Begin a conversation over a directory."""
        name = new_id("acp")
        await self._open(name, cwd, mcp_servers or ())
        self._later(self._send_commands(name))
        return NewSessionResponse(session_id=name)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[McpServer] | None = None, **_more: Any
    ) -> LoadSessionResponse:
        """Show a conversation from its beginning, then what goes on in it."""
        key = self._key(session_id)
        if await db(find_instance, key) is None:
            raise RequestError.resource_not_found(session_id)
        updates = await self._open(session_id, cwd, mcp_servers or ())
        await updates.replay(await db(current_transcript, key))
        self._later(self._send_commands(session_id), self._sessions[session_id].go_on())
        return LoadSessionResponse()

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: Any
    ) -> ListSessionsResponse:
        """The conversations that have a directory, the newest first."""
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        rows = await db(self._conversations, start)
        wanted = None if cwd is None else await asyncio.to_thread(os.path.realpath, cwd)
        found = [
            SessionInfo(session_id=row.name, cwd=root, title=row.title or None, updated_at=row.active_at.isoformat())
            for row, root in rows
            if root and wanted in (None, root)
        ]
        more = str(start + PAGE) if len(rows) == PAGE else None
        return ListSessionsResponse(sessions=found, next_cursor=more)

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_more: Any) -> PromptResponse:
        """Answer a message; the response is the end of the answer."""
        try:
            return PromptResponse(stop_reason=await self._session(session_id).prompt(prompt))
        except InputInvalid as error:
            raise RequestError.invalid_params({"details": error.message}) from error
        except ThinkError as error:
            raise RequestError(-32603, error.message, {"code": error.code}) from error

    async def cancel(self, session_id: str, **_more: Any) -> None:
        """Stop the answer of a session."""
        self._session(session_id).cancel()

    def _key(self, session_id: str) -> InstanceKey:
        if not is_root_name(session_id):
            raise RequestError.resource_not_found(session_id)
        return replace(self.key, name=session_id)

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self._sessions:
            raise RequestError.resource_not_found(session_id)
        return self._sessions[session_id]

    async def _open(self, name: str, cwd: str, servers: Sequence[McpServer]) -> Updates:
        assert self._client is not None, "the connection calls on_connect first"
        directory = Path(cwd)
        if not directory.is_absolute() or not await asyncio.to_thread(os.path.isdir, directory):
            raise RequestError.invalid_params({"details": f"{cwd!r} is no absolute path of a directory."})
        handle = AgentHandle(self._key(name))
        try:
            await db(attach_directory, handle.key, directory)
            await _use_servers(handle, servers)
        except ThinkError as error:
            raise RequestError.invalid_params({"details": error.message}) from error
        updates = Updates(self._client, handle.key, str(directory))
        self._sessions[name] = EditorSession(handle, updates)
        return updates

    def _conversations(self, start: int) -> list[tuple[AgentInstance, str]]:
        rows = AgentInstance.objects.filter(owner_id=self.key.owner_id, agent=self.key.agent, parent=None)
        page = list(rows.order_by("-active_at", "id")[start : start + PAGE])
        roots = directories_of([row.pk for row in page])
        return [(row, roots.get(row.pk, "")) for row in page]

    async def _send_commands(self, session_id: str) -> None:
        assert self._client is not None
        await self._client.session_update(session_id, update_available_commands(COMMANDS))

    def _later(self, *works: Any) -> None:
        """Do this after the response that is about to be sent."""

        async def work() -> None:
            for each in works:
                await each

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a session did not go on", exc_info=error, extra={"action": "acp_failed"})


async def _use_servers(handle: AgentHandle, servers: Sequence[McpServer]) -> None:
    """Let the conversation use MCP servers of the client, unless it has one of the name. Errors: `McpServerInvalid`."""
    known = {server.name for server in await handle.list_mcp_servers()} if servers else set()
    for server in servers:
        if server.name in known:
            continue
        if isinstance(server, McpServerStdio):
            environment = {each.name: each.value for each in server.env}
            await handle.add_mcp_server(server.name, command=[server.command, *server.args], env=environment)
        elif isinstance(server, HttpMcpServer):
            await handle.add_mcp_server(
                server.name, server.url, headers={each.name: each.value for each in server.headers}
            )
        else:
            raise InputInvalid("MCP servers are reached over HTTP or started by a command.")
