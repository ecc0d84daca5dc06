"""The agents above a sub-agent, as they are asked about its actions: what one of them denies is denied.

Only classes that have hooks for actions are asked; all others decide by the permissions of the same user. Each is asked
about the turn in whose course the sub-agent was made to work, since that is the turn to which it grants.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from chat.agent.base import Agent, InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.core.loop.hooks import AuthorizationContext
from chat.models import Turn, TurnTrigger
from chat.models.runs import AgentRun
from chat.user_code.authorization import AskedAction
from chat.user_code.call_hook import notify_hook
from thinkproject.kernel.aio import db

HOOKS: Final = ("authorize_turn", "authorize_action")

MakeAgent: TypeAlias = Callable[[InstanceKey], Agent]


async def asked_above(key: InstanceKey, turn: AuthorizationContext, make_agent: MakeAgent) -> list[AskedAction]:
    """The agents above that have a say, the nearest first. No query where there is none of them.

    `key`: the address of the sub-agent, with the id of its row; `turn`: its own turn, which stands for that of an agent
    above where that one did not start it by a run.
    """
    above = [each for each in reversed(key.ancestors) if _has_hooks(each.agent)]
    if not above:
        return []
    turns = await db(_starting_turns, key)
    found = []
    for parent in above:
        agent = make_agent(parent)
        await notify_hook(agent, "on_start")
        started_in = turns.get(len(parent.ancestors))
        about = turn if started_in is None else _context_of(started_in, turn.user_id)
        found.append(AskedAction(agent=agent, turn=replace(about, sub_agent=key.agent)))
    return found


def _has_hooks(agent: str) -> bool:
    """Whether a class has hooks for actions. Below a class that is gone there are no tools at all."""
    cls = get_agent_class(agent) if is_served(agent) else Think
    return any(getattr(cls, name, None) is not getattr(Think, name) for name in HOOKS)


def _context_of(turn: Turn, user_id: int | None) -> AuthorizationContext:
    return AuthorizationContext(
        request_id=turn.request_id,
        turn_id=turn.pk,
        user_id=user_id,
        continuation=turn.trigger == TurnTrigger.CONTINUE,
        body=turn.body,
    )


def _starting_turns(key: InstanceKey) -> dict[int, Turn]:
    """By the depth of each agent above: its turn that has started the newest run below. A query for each."""
    found: dict[int, Turn] = {}
    child_id: str | None = key.instance_id
    for depth in range(len(key.ancestors) - 1, -1, -1):
        runs = AgentRun.objects.filter(child_id=child_id).select_related("parent_turn")
        run = runs.order_by("-created_at").first()
        if run is None:
            break
        if run.parent_turn is not None:
            found[depth] = run.parent_turn
        child_id = run.parent_id
    return found
