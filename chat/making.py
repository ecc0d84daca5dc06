"""Make an agent object: the class of an address, and the host through which it reaches the product."""

from chat.agent import Agent, InstanceKey, SavedTurn
from chat.handles import AgentHandle
from chat.host import DatabaseHost
from chat.registry import get_agent_class
from thinkproject.kernel.jsonvalue import JSONObject


class ChatDatabaseHost(DatabaseHost):
    """The host of agents that chat."""

    async def run_turn(self, message: JSONObject | str) -> SavedTurn:
        """Say something and wait; a failed turn is an answer, not an exception."""
        result = await AgentHandle(self.key).chat(message, _Quiet(), waits_for_hook=False)
        return SavedTurn(request_id=result.request_id, status=result.status, error=result.error)


class _Quiet:
    """A callback for callers who read the result."""

    def on_error(self, text: str) -> None:
        """Nothing: the result says it."""


def make_agent(key: InstanceKey) -> Agent:
    """Make a fresh object of the instance's class. Errors: `AgentNotFound`."""
    return get_agent_class(key.agent)(ChatDatabaseHost(key), key)
