"""Messages between the agents of a room: to send one, to wait for a reply, to pause an agent.

Agents and `AgentHandle` have the same methods over the same operations. A room is an instance: its own agent and those
that take part in it each have an inbox there. See `docs/howto/agents-that-talk.md`.
"""

from chat.agent.methods.sub_agents import AgentName, route_of
from chat.agent.ports import InstancePort
from chat.agent.values.messages import ANSWER_SECONDS


class MessageMethods:
    """Messages between agents of a room."""

    instance: InstancePort

    async def send_message(self, agent: AgentName, text: str, *, request_id: str = "") -> int:
        """Put a message into the inbox of an agent of this room, which answers it; returns its number.

        `agent`: a class, or its route name; the room's own agent too. Of an agent's own code the message is from that
        agent, of other code from no agent. `request_id`: of at most 64 characters, for `watch_for_response`; the same
        one again is the same message. Durability: committed, with the turn that answers it. Errors: `AgentNotFound`,
        `TurnConflict` for an agent that does not chat, `InputInvalid`, those of admission.
        """
        return await self.instance.inbox.send(route_of(agent), text, request_id)

    async def watch_for_response(self, request_id: str, *, seconds: float = ANSWER_SECONDS) -> str:
        """Wait for the answer to a message of this room. Within a tool use `agents`, which holds no worker meanwhile.

        Errors: `AgentCallFailed` for an agent that fails, and after so many seconds.
        """
        return await self.instance.inbox.watch(request_id, seconds)

    async def has_pending_work(self, agent: AgentName | None = None) -> bool:
        """Whether anything waits in the inbox of an agent of this room, of this one by default. One query."""
        return await self.instance.inbox.has_pending("" if agent is None else route_of(agent))

    async def pause_agent(self, agent: AgentName | None = None) -> bool:
        """Let no further turn of an agent of this room begin, of this one by default; false where it is paused.

        What runs goes on to its end; what is sent meanwhile waits, by whatever way. Durability: committed.
        """
        return await self.instance.inbox.pause("" if agent is None else route_of(agent), ends=False)

    async def continue_agent(self, agent: AgentName | None = None) -> bool:
        """End the pause of an agent: what waits is answered in its order. False where it is not paused."""
        return await self.instance.inbox.pause("" if agent is None else route_of(agent), ends=True)
