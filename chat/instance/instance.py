"""An instance for agents, handles, API and admin alike, and the agent objects that are made of its class."""

from functools import cached_property
from typing import Any

from chat.agent.base import Agent, InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.agent.values.extensions import ExtensionState
from chat.background.queue import InstanceQueue
from chat.background.service import InstanceFibers
from chat.conf import chat_settings
from chat.errors import TurnConflict
from chat.extensions.service import InstanceExtensions
from chat.inbox.service import InstanceInbox
from chat.instances.rows import ensure_instance
from chat.instances.workspaces import InstanceWorkspace
from chat.llm.registry import name_of
from chat.mcp_servers.service import InstanceMcpServers
from chat.runtime.approvals import InstanceApprovals
from chat.runtime.model_choice import ModelChoices
from chat.runtime.sessions import InstanceSessions
from chat.runtime.state import InstanceState
from chat.runtime.submissions import InstanceSubmissions
from chat.runtime.turns import InstanceTurns
from chat.schedules.service import InstanceSchedules
from chat.sub_agents.service import InstanceSubAgents
from chat.user_code.call_hook import call_hook, notify_hook
from chat.user_code.extensions import declare_blocks
from chat.user_code.session_setup import configured_session
from sessions_app.context.session_context import SessionContext
from sessions_app.core.compaction.tokens import counter_named
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.phrases import Phrase
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.services import DEFAULT_NAME


class Instance:
    """The services behind an address, by topic. Holds no rows; the first write makes them.

    `served`: the agent object that reaches the product through it. Without one, code of the server holds it, and an
    object of the class is made wherever the developer's code is asked.
    """

    def __init__(self, key: InstanceKey, served: Agent | None = None) -> None:
        self.key = key
        self.served = served
        self.turn_id = ""
        self.asked_by: Any = None
        self.extension_state = ExtensionState()
        self._context: SessionContext | None = None  # of the turn that the agent object works for

    @cached_property
    def turns(self) -> InstanceTurns:
        """Turns that code runs."""
        return InstanceTurns(self.key)

    @cached_property
    def submissions(self) -> InstanceSubmissions:
        """Work that was handed in."""
        return InstanceSubmissions(self.key)

    @cached_property
    def sessions(self) -> InstanceSessions:
        """Its histories."""
        return InstanceSessions(self.key)

    @cached_property
    def model_choice(self) -> ModelChoices:
        """The model that people chose for it."""
        return ModelChoices(self.key, self._own_model)

    @cached_property
    def approvals(self) -> InstanceApprovals:
        """Calls that wait for a person."""
        return InstanceApprovals(self.key)

    @cached_property
    def state(self) -> InstanceState:
        """Its synced state and its configuration."""
        return InstanceState(self.key, self.agent)

    @cached_property
    def background(self) -> InstanceFibers:
        """Its background work."""
        return InstanceFibers(self.key, self.agent)

    @cached_property
    def queue(self) -> InstanceQueue:
        """Calls that run in order."""
        return InstanceQueue(self.key)

    @cached_property
    def schedules(self) -> InstanceSchedules:
        """Its schedules."""
        return InstanceSchedules(self.key)

    @cached_property
    def sub_agents(self) -> InstanceSubAgents:
        """The instances below it, and their runs."""
        return InstanceSubAgents(self.key)

    @cached_property
    def inbox(self) -> InstanceInbox:
        """Messages between the agents of its room."""
        return InstanceInbox(self.key, "" if self.served is None else self.key.agent)

    @cached_property
    def mcp_servers(self) -> InstanceMcpServers:
        """Its MCP servers."""
        return InstanceMcpServers(self.key, self.agent)

    @cached_property
    def extensions(self) -> InstanceExtensions:
        """Its extensions."""
        return InstanceExtensions(self.key, self._chat_agent)

    def open_workspace(self, name: str = DEFAULT_NAME) -> Workspace:
        """Open a workspace of the instance; within a turn, as that turn works on it."""
        return InstanceWorkspace(self.key, name=name).in_turn(self.turn_id)

    async def agent(self) -> Agent:
        """The agent object that it serves, or a fresh one. Errors: `AgentNotFound`."""
        return self.served or await started_agent(self.key)

    async def open_context(self, session_id: str | None = None) -> SessionContext:
        """Open the context of a turn's session and keep it. `None`: the one that is kept, else the current session's.

        Errors: `TurnConflict` for an agent that does not chat; `AgentCodeFailed`.
        """
        agent = await self.agent()
        if not isinstance(agent, Think):
            raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=self.key.agent))
        if session_id is not None and (self._context is None or self._context.session_id != session_id):
            self._context = await _open_context(agent, session_id)
        return self._context or await _open_context(agent, await db(_current_session, self.key))

    async def _chat_agent(self) -> Think | None:
        """The agent where it chats, else `None`, also where its class is gone."""
        if self.served is None and not is_served(self.key.agent):
            return None
        agent = await self.agent()
        return agent if isinstance(agent, Think) else None

    async def _own_model(self) -> str | None:
        """The name of the model that the agent itself names for this conversation; `None` where it cannot say."""
        try:
            agent = await self._chat_agent()
            return None if agent is None else name_of(await call_hook(agent, "get_model")) or None
        except ThinkError:  # logged where it was raised; the next turn ends with it
            return None


def make_agent(key: InstanceKey) -> Agent:
    """Make a fresh object of the instance's class. Errors: `AgentNotFound`."""
    instance = Instance(key)
    instance.served = get_agent_class(key.agent)(instance, key)
    return instance.served


async def started_agent(key: InstanceKey) -> Agent:
    """Make a fresh object of the instance's class and run its `on_start`. Errors: `AgentNotFound`."""
    agent = make_agent(key)
    await notify_hook(agent, "on_start")
    return agent


async def _open_context(agent: Think, session_id: str) -> SessionContext:
    """Configure the session and give its context; one without blocks has the text of `get_system_prompt`.

    Errors: `AgentCodeFailed` when the agent's own code raises.
    """
    setup = await configured_session(agent)
    await declare_blocks(agent, setup)

    async def base() -> str:
        prompt: str = await call_hook(agent, "get_system_prompt")
        return prompt

    counter = setup.token_counter or counter_named(chat_settings.token_counter)
    return SessionContext(session_id, setup, counter=counter, base=base)


def _current_session(key: InstanceKey) -> str:
    session_id = ensure_instance(key).session_id
    assert session_id is not None
    return session_id
