"""Agents beside the tools of an agent that chats: calls of them are messages. See `docs/howto/agents-that-talk.md`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from chat.agent.appearance import appearance_of
from chat.agent.methods.messages import MessageMethods
from chat.agent.registry import get_agent_class
from chat.agent.values.messages import AgentCall, AgentReference
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
