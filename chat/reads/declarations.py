"""Declarations of an agent class, for clients and for staff: its methods, its sub-agents, its limits."""

import inspect
from dataclasses import dataclass

from chat.agent.base import Agent
from chat.agent.callables import CallableInfo, callables_of
from chat.agent.registry import is_served
from chat.agent.think import Think
from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method that clients may call. `signature`: its parameters as its class declares them."""

    name: str
    signature: str
    description: str
    is_streaming: bool


@dataclass(frozen=True, kw_only=True)
class Declarations:
    """The declarations of a class; the fields are those of `AgentDetailOut`."""

    chats: bool
    methods: list[Method]
    sub_agents: list[str]
    config_access: str
    config_schema: JSONObject | None
    max_steps: int | None
    tool_names: list[str] | None


def declarations(agent_class: type[Agent]) -> Declarations:
    """Read them from the class; nothing of the developer's runs."""
    think = agent_class if issubclass(agent_class, Think) else None
    below = [each if isinstance(each, str) else each.route_name() for each in agent_class.sub_agents]
    names = None if think is None else think.enabled_tools
    return Declarations(
        chats=think is not None,
        methods=[_method(agent_class, info) for _name, info in sorted(callables_of(agent_class).items())],
        sub_agents=[each for each in below if is_served(each)],
        config_access=agent_class.config_access,
        config_schema=None if agent_class.config_model is None else agent_class.config_model.model_json_schema(),
        max_steps=None if think is None else think.max_steps,
        tool_names=None if names is None else list(names),
    )


def _method(agent_class: type[Agent], info: CallableInfo) -> Method:
    method = getattr(agent_class, info.attribute)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return Method(
        name=info.name,
        signature=f"({', '.join(map(str, parameters))})",
        description=inspect.getdoc(method) or "",
        is_streaming=info.is_streaming,
    )
