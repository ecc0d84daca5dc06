"""Messages between the agents of a room: to send one, to wait for a reply, to pause an agent.

Agents and `AgentHandle` have the same methods over the same operations. A room is an instance: its own agent and those
that take part in it each have an inbox there. See `docs/howto/agents-that-talk.md`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from chat.agent.appearance import appearance_of
from chat.agent.methods.sub_agents import AgentName, route_of
from chat.agent.ports import InstancePort
from chat.agent.registry import get_agent_class
from chat.agent.values.messages import ANSWER_SECONDS, AgentCall, AgentReference
from chat.agent.values.runs import input_text
from chat.core.model.output_schema import Output
from chat.errors import OutputInvalid
from fibers.waits import WaitEnd
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool import Tool, ToolContext, checked_name
from tools_app.errors import ToolError

_MESSAGE: JSONObject = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What to say, with everything that has to be known."}},
    "required": ["message"],
    "additionalProperties": False,
}


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


class AgentCalls(MessageMethods):
    """The part of an agent that chats: other agents beside its tools."""

    agents: ClassVar[Sequence[AgentReference | type[Any] | str]] = ()
    """Agents that the model may ask, beside its tools. A call is a message in the other one's inbox, in this room, and
    waits for the reply without holding a worker: two minutes, unless the `AgentReference` says otherwise. Agents whose
    answer would wait for this call are refused at once."""

    @classmethod
    def agent_references(cls) -> dict[str, AgentReference]:
        """`agents` by route name."""
        given = (one if isinstance(one, AgentReference) else AgentReference(agent=one) for one in cls.agents)
        return {reference.route: reference for reference in given}

    def agent_calls(self) -> list[Tool]:
        """`agents` as tools of a turn. Errors: `AgentNotFound`; `ToolDeclarationInvalid` for a name."""
        return [self._agent_call(reference) for reference in self.agent_references().values()]

    def _agent_call(self, reference: AgentReference) -> Tool:
        shown = appearance_of(get_agent_class(reference.route))
        output = None if reference.output_schema is None else Output(schema=_plain(reference.output_schema))

        async def ask(input: JSONObject, context: ToolContext) -> JSONValue:  # noqa: A002 - as tools get it
            async def wait(key: str) -> WaitEnd:
                return await context.wait(
                    "agent",
                    label=shown.title,
                    key=key,
                    seconds=reference.timeout_seconds,
                    request={"agent": reference.route, "requestId": key},
                )

            call = AgentCall(
                target=reference.route,
                content=input_text(input),
                key=context.idempotency_key,
                turn_id=context.turn_id,
                seconds=reference.timeout_seconds,
                wait=wait,
            )
            return _read(await self.instance.inbox.call(call), output, shown.title)

        return Tool(
            name=checked_name(reference.name or reference.route.replace("-", "_")),
            description=reference.description or shown.description or f"Ask {shown.title}.",
            input_schema=_MESSAGE if reference.input_schema is None else _schema(reference.input_schema),
            function=ask,
            context_parameter="context",
            needs_approval=reference.needs_approval,
            title=shown.title,
            read_only=reference.read_only,
            open_world=reference.open_world,
        )


def _read(text: str, output: Output | None, title: str) -> JSONValue:
    if output is None:
        return {"response": text}
    try:
        return output.read(text)
    except OutputInvalid as error:
        raise ToolError(f"{title} has answered in another form than it was asked for: {error.message}") from error


def _plain(given: type[BaseModel] | Mapping[str, Any]) -> type[BaseModel] | JSONObject:
    return dict(given) if isinstance(given, Mapping) else given


def _schema(given: type[BaseModel] | Mapping[str, Any]) -> JSONObject:
    schema: JSONObject = dict(given) if isinstance(given, Mapping) else given.model_json_schema()
    return schema
