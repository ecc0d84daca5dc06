"""Whether an action may run: asked before a person is, and again when it runs. Denied wherever that cannot be said."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chat.access.permissions import missing_permissions
from chat.agent.base import Agent
from chat.core.loop.hooks import ActionContext, AuthorizationContext
from chat.errors import TurnConfigInvalid
from chat.user_code.call_hook import AgentCodeFailed, call_hook, is_overridden
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.action_rules import ActionRules

NO_ACTIONS: Final = "This turn may not use actions."
NOT_DECIDED: Final = "Whether this action is allowed could not be decided."


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAction:
    """An agent that is asked about an action, and the turn to which it grants."""

    agent: Agent
    turn: AuthorizationContext


async def _none_above() -> Sequence[AskedAction]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGate:
    """Decides about the actions of one call. `is_approved`: a person has approved the call.

    `above`: finds the agents above a sub-agent, each of which may deny and none of which grants anything to it.
    """

    agent: Agent
    turn: AuthorizationContext
    call_id: str
    is_approved: bool = False
    above: Callable[[], Awaitable[Sequence[AskedAction]]] = _none_above

    async def refusal(self, rules: ActionRules, given: JSONObject) -> str | None:
        """The reason why the action may not run, for the model; `None` when it may. Nothing is remembered."""
        try:
            async with asyncio.timeout(rules.timeout_seconds):
                reason = await self._refusal(AskedAction(agent=self.agent, turn=self.turn), rules, given)
                if reason is not None:
                    return reason
                for asked in await self.above():
                    reason = await self._refusal(asked, rules, given)
                    if reason is not None:
                        return reason
                return None
        except TimeoutError:
            return NOT_DECIDED
        except ThinkError as error:
            return NOT_DECIDED if isinstance(error, AgentCodeFailed | TurnConfigInvalid) else error.message

    async def _refusal(self, asked: AskedAction, rules: ActionRules, given: JSONObject) -> str | None:
        agent, turn = asked.agent, asked.turn
        granted = await call_hook(agent, "authorize_turn", turn)
        if granted is False:
            return NO_ACTIONS
        missing = await self._missing(rules, granted)
        if is_overridden(agent, "authorize_action"):
            context = ActionContext(
                request_id=turn.request_id,
                turn_id=turn.turn_id,
                call_id=self.call_id,
                user_id=turn.user_id,
                action=rules.name,
                input=given,
                permissions=rules.permissions,
                missing=missing,
                risk=rules.risk,
                approved=self.is_approved,
                sub_agent=turn.sub_agent,
            )
            decision = await call_hook(agent, "authorize_action", context)
            if decision is True:
                return None
            if decision is not None:
                return decision or f"Action {rules.name!r} is not allowed."
        if missing:
            return f"Action {rules.name!r} needs permissions that are not granted: {', '.join(missing)}."
        return None

    async def _missing(self, rules: ActionRules, granted: Any) -> tuple[str, ...]:
        if granted is True:
            return ()
        if granted is None:
            return await db(missing_permissions, self.turn.user_id, rules.permissions)
        names = set(granted)
        return tuple(name for name in rules.permissions if name not in names)
