"""Make an agent object: the class of an address, and the host through which it reaches the product."""

from chat.agent import Agent, InstanceKey
from chat.host import DatabaseHost
from chat.kept_sessions import DatabaseHistory, DatabaseSessions
from chat.registry import get_agent_class
from chat.submissions import DatabaseSubmissions
from chat.turn_port import DatabaseTurns


class ChatDatabaseHost(DatabaseHost):
    """The host of agents that chat."""

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


def make_agent(key: InstanceKey) -> Agent:
    """Make a fresh object of the instance's class. Errors: `AgentNotFound`."""
    return get_agent_class(key.agent)(ChatDatabaseHost(key), key)
