"""Make an agent object: the class of an address, and the host through which it reaches the product."""

from chat.agent.base import Agent, InstanceKey
from chat.agent.context_verbs import ContextVerbs
from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.errors import TurnConflict
from chat.instances.rows import ensure_instance
from chat.runtime.host import DatabaseHost
from chat.runtime.session_context import open_context
from chat.runtime.sessions import DatabaseHistory, DatabaseSessions
from chat.runtime.submissions import DatabaseSubmissions
from chat.runtime.turns import DatabaseTurns
from chat.user_code.calls import notify_hook
from sessions_app.context.session_context import SessionContext
from thinkproject.kernel.aio import db


class ChatDatabaseHost(DatabaseHost):
    """The host of agents that chat."""

    _context: SessionContext | None = None  # of the turn that the agent object serves

    async def open_context(self, agent: Agent, session_id: str | None = None) -> SessionContext:
        """Open the context of a turn's session and keep it; without one that one, or the current session's of now."""
        if not isinstance(agent, Think):
            raise TurnConflict(f"Agent {self.key.agent!r} does not chat.")
        if session_id is not None and (self._context is None or self._context.session_id != session_id):
            self._context = await open_context(agent, session_id)
        return self._context or await open_context(agent, await db(_current_session, self.key))

    @property
    def turns(self) -> DatabaseTurns:
        """Turns of this conversation."""
        return DatabaseTurns(self.key)

    @property
    def sessions(self) -> DatabaseSessions:
        """Histories of this instance."""
        return DatabaseSessions(self.key)

    @property
    def history(self) -> DatabaseHistory:
        """The current one of them."""
        return DatabaseHistory(self.key)

    @property
    def submissions(self) -> DatabaseSubmissions:
        """Work that was handed in."""
        return DatabaseSubmissions(self.key)


def context_of(key: InstanceKey) -> ContextVerbs:
    """Give the context verbs of an instance to server code."""

    async def opened() -> SessionContext:
        agent, host = await started_agent(key)
        return await host.open_context(agent)

    return ContextVerbs(opened)


def _current_session(key: InstanceKey) -> str:
    session_id = ensure_instance(key).session_id
    assert session_id is not None
    return session_id


async def started_agent(key: InstanceKey) -> tuple[Agent, ChatDatabaseHost]:
    """Make a fresh object of the instance's class and run its `on_start`. Errors: `AgentNotFound`."""
    host = ChatDatabaseHost(key)
    agent = get_agent_class(key.agent)(host, key)
    await notify_hook(agent, "on_start")
    return agent, host


def make_agent(key: InstanceKey) -> Agent:
    """Make a fresh object of the instance's class. Errors: `AgentNotFound`."""
    return get_agent_class(key.agent)(ChatDatabaseHost(key), key)
