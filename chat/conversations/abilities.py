"""The abilities of agents besides their conversation: methods for clients, sub-agents, runs, workspaces, skills.

The API and the admin call the same functions. Whether a person may was decided by the caller.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import async_to_sync

from chat.access.auth import OpenedAgent
from chat.agent.base import Agent, InstanceKey
from chat.agent.callables import CallableInfo, StreamResult, find_callable
from chat.agent.invocation import call, stream
from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.agent.values.runs import Detached, RunRequest
from chat.conversations.changes import create_instance
from chat.errors import CallRefused, InputInvalid
from chat.instance.instance import make_agent, started_agent
from chat.instance.resolve import resolve_below
from chat.instances.rows import find_instance, key_of
from chat.instances.workspaces import attach_workspace, detach_workspace
from chat.models import AgentInstance, AgentRun
from chat.turns.delegation.starting import start_run
from chat.user_code.call_hook import user_code_boundary
from chat.user_code.skills import skills_of
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from thinkproject.kernel.phrases import Phrase
from tools_app.errors import WorkspaceNotFound
from tools_app.models import WorkspaceAttachment
from tools_app.workspace.services import DEFAULT_NAME

MAX_ITEMS: Final = 1_000
MAX_SECONDS: Final = 60.0
"""A method may stream so many items and run so long within a request; sockets have neither bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """The result of a method. `items`: what a streaming one gave before its result, `None` for any other."""

    result: JSONValue
    items: list[JSONValue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillView:
    """A skill of an agent. `fault`: why it cannot be loaded."""

    name: str
    description: str = ""
    fault: str = ""


async def call_method(key: InstanceKey, method: str, args: list[JSONValue]) -> MethodResult:
    """Call a method that the agent's class offers to clients (`@client_callable`), and wait for its result.

    Errors: `CallRefused`, also after 60 seconds; `AgentCodeFailed`, `AgentNotFound`, and what the method raises.
    """
    info = find_callable(get_agent_class(key.agent), method)
    with user_code_boundary(info.attribute):
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await _answer(make_agent(key), info, args)
        except TimeoutError:
            raise CallRefused(f"Method {info.name} took longer than {MAX_SECONDS:.0f} seconds") from None


async def skills_for(key: InstanceKey) -> list[SkillView]:
    """The skills that an agent has, by name, then those that cannot be loaded. Errors: those of the agent's code."""
    agent = await started_agent(key)
    if not isinstance(agent, Think):
        return []
    library = await skills_of(agent)
    found = [SkillView(name=each.head.name, description=each.head.description) for each in library]
    return found + [SkillView(name=fault.place, fault=fault.reason) for fault in library.faults]


def open_sub_agent(parent: AgentInstance, agent: str, name: str) -> AgentInstance:
    """Open a sub-agent that the parent's class lets clients open, or the existing one of this name.

    Errors: `AgentNotFound`, `AgentUnavailable`, `QuotaExceeded`, `InputInvalid` for a parent without an owner.
    """
    key = _below(parent, agent, name)
    return create_instance(OpenedAgent(key=key, instance=find_instance(key)))


def begin_run(
    parent: AgentInstance, agent: str, given: JSONValue, *, run_id: str = "", display: JSONObject | None = None
) -> AgentRun:
    """Have such an agent work for the parent; no call waits for it, and it counts as a message of the owner's.

    What keeps it from beginning is its outcome. Errors: as `open_sub_agent` and `start_run`.
    """
    wanted = RunRequest(
        agent=agent,
        input=given,
        run_id=run_id or new_id("run"),
        display=display,
        detached=Detached(),
        is_of_person=True,
    )
    _below(parent, agent, wanted.run_id)
    return start_run(key_of(parent), wanted)


def use_workspace(
    instance: AgentInstance, name: str, other: AgentInstance | str, *, can_write: bool
) -> WorkspaceAttachment:
    """Let a conversation use the workspace of another one, or one by its id; again, to change whether it may write.

    Errors: `InputInvalid` for the name of its own one; those of `attach_workspace`.
    """
    if name == DEFAULT_NAME:
        raise InputInvalid(Phrase("{name} is the conversation's own workspace.", name=name))
    wanted = other if isinstance(other, str) else key_of(other)
    found = attach_workspace(key_of(instance), wanted, name=name, can_write=can_write)
    return WorkspaceAttachment.objects.get(scope=instance.pk, name=name, workspace=found)


def end_workspace_use(instance: AgentInstance, name: str) -> None:
    """End what `use_workspace` began; the workspace stays. Errors: `WorkspaceNotFound`."""
    row = WorkspaceAttachment.objects.filter(scope=instance.pk, name=name).exclude(name=DEFAULT_NAME).first()
    if row is None or not detach_workspace(key_of(instance), row.workspace_id):
        raise WorkspaceNotFound


def _below(parent: AgentInstance, agent: str, name: str) -> InstanceKey:
    if parent.owner_id is None:
        raise InputInvalid("This conversation has no owner: only code opens agents below it.")
    return async_to_sync(resolve_below)(key_of(parent), agent, name)


async def _answer(agent: Agent, info: CallableInfo, args: list[JSONValue]) -> MethodResult:
    if not info.is_streaming:
        return MethodResult(result=_json(info, await call(agent, info, args)))
    items: list[JSONValue] = []
    async for item in stream(agent, info, args):
        if isinstance(item, StreamResult):
            return MethodResult(result=_json(info, item.value), items=items)
        if len(items) >= MAX_ITEMS:
            raise CallRefused(f"Method {info.name} streams more than {MAX_ITEMS} items: call it over a socket")
        items.append(_json(info, item))
    return MethodResult(result=None, items=items)


def _json(info: CallableInfo, value: Any) -> JSONValue:
    try:
        byte_size(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise CallRefused(f"Method {info.name}: its result is not JSON-serializable: {error}") from error
    return value
