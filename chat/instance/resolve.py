"""From the address that a URL asks for to the address of an instance: the classes on the way are asked.

Denies by default: a class says with `sub_agents` which classes may be opened below it, its hook may refuse some of
them, and unknown and refused ones get the same `AgentNotFound`. Called on connect, not for each frame.
"""

import logging

from chat.agent.base import Agent, InstanceKey
from chat.agent.contracts import answer_problem
from chat.agent.registry import get_agent_class, is_served
from chat.errors import AgentNotFound, AgentUnavailable, TurnConfigInvalid
from chat.instance.instance import make_agent
from chat.instances.addresses import Address, is_name
from chat.user_code.call_hook import AgentCodeFailed, call_hook, logged, user_code_boundary
from thinkproject.kernel.aio import call_user_code
from thinkproject.kernel.errors import ThinkError

logger = logging.getLogger(__name__)

_DEFAULT = Agent.__dict__["resolve_name"].__func__


async def resolve(user_id: int, address: Address) -> InstanceKey:
    """Resolve a user's URL to an address. Read-only; queries only made by the developers' hooks.

    Errors: `AgentNotFound` for a sub-agent that is unknown or refused, `AgentUnavailable` when a hook failed.
    """
    try:
        key = InstanceKey(
            owner_id=user_id, agent=address.agent, name=await _named(address.agent, address.name, user_id)
        )
        for hop in address.hops:
            await _admit(key, hop.agent, hop.name)
            key = key.below(hop.agent, await _named(hop.agent, hop.name, user_id))
    except (AgentCodeFailed, TurnConfigInvalid) as error:  # logged where it happened
        raise AgentUnavailable from error
    return key


def resolve_now(user_id: int, address: Address) -> InstanceKey | None:
    """The same where no class has to be asked; `None` where one has."""
    if address.hops or _asks(address.agent):
        return None
    return InstanceKey(owner_id=user_id, agent=address.agent, name=address.name)


def _asks(agent: str) -> bool:
    """Whether a class decides on the names of its instances itself."""
    return is_served(agent) and getattr(get_agent_class(agent).resolve_name, "__func__", None) is not _DEFAULT


async def _named(agent: str, name: str, user_id: int) -> str:
    if not is_served(agent):  # an instance whose class is gone is read under its own name
        return name
    with user_code_boundary("resolve_name"):
        found = await call_user_code(get_agent_class(agent).resolve_name, name, user_id) if _asks(agent) else name
    problem = answer_problem(get_agent_class(agent), "resolve_name", found) if _asks(agent) else ""
    if not problem and not is_name(found):
        problem = f"{get_agent_class(agent).__name__}.resolve_name() returned a name that no instance can have."
    if problem:
        raise logged(TurnConfigInvalid(problem))
    return str(found)


async def resolve_below(parent: InstanceKey, agent: str, name: str) -> InstanceKey:
    """Resolve a sub-agent that a client opens below an instance of its own. Errors: as `resolve`."""
    try:
        await _admit(parent, agent, name)
        return parent.below(agent, await _named(agent, name, _user_of(parent)))
    except AgentCodeFailed as error:
        raise AgentUnavailable from error


def _user_of(key: InstanceKey) -> int:
    assert key.owner_id is not None  # a client's own
    return key.owner_id


async def _admit(parent: InstanceKey, agent: str, name: str) -> None:
    """Ask the class above whether clients may open this sub-agent. Errors: `AgentNotFound`."""
    declared = get_agent_class(parent.agent).sub_agents
    known = {each if isinstance(each, str) else each.route_name() for each in declared}
    if agent not in known or not is_served(agent):
        raise AgentNotFound
    try:
        allowed = await call_hook(make_agent(parent), "on_before_sub_agent", agent, name)
    except (AgentCodeFailed, TurnConfigInvalid):
        raise
    except ThinkError as error:
        logger.info("sub-agent refused", extra={"action": "sub_agent_refused", "agent": agent, "code": error.code})
        raise AgentNotFound from error
    if allowed is False:
        raise AgentNotFound
