"""Approvals by code of the server, and the hooks that say what actions may do.

`Think` and `AgentHandle` share the methods: a chat message with two buttons, an e-mail with a link or a page of one's
own decides by them, with no browser tab open.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from chat.core.loop.hooks import ActionContext, AuthorizationContext
from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingExecution:
    """A call that waits for a person's decision.

    `id` is that of the question. `title` and `sentence` are for people, `sentence` may be empty; `risk` is "low",
    "medium", "high" or empty. `may_edit`: the arguments that an approval may change. `expires_at`: when it counts as
    denied; `None`: never. `instance_id`, `agent`: the conversation that asks, this one or one of its sub-agents'.
    `by_code`: code asks that a model wrote. `descriptor`: as published clients know a question.
    """

    id: str
    call_id: str
    tool: str
    title: str
    sentence: str
    risk: str
    input: JSONObject
    may_edit: bool | tuple[str, ...]
    requested_at: datetime
    expires_at: datetime | None
    instance_id: str
    agent: str
    by_code: bool
    descriptor: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDecision:
    """A decision about a call. `by`: the user who decided; `via`: the way it came; `continues`: go on by itself."""

    approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None
    by: int | None = None
    via: str = "server"
    continues: bool = True


class ApprovalOperations(Protocol):
    """The operations on pending decisions, as the methods call them."""

    async def read_pending_approvals(self) -> list[PendingExecution]:
        """The questions that can be decided here and in sub-agents, oldest first."""
        ...

    async def decide_execution(self, execution_id: str, decision: ExecutionDecision) -> bool:
        """Decide one of them; false when it was decided before, or is over."""
        ...


class ApprovalMethods:
    """Pending decisions of a conversation. See `docs/howto/take-actions.md`."""

    @property
    def _approvals(self) -> ApprovalOperations:
        raise NotImplementedError  # the agent and the handle each bring their own

    async def pending_approvals(self) -> list[PendingExecution]:
        """Read the calls that wait for a person's decision, oldest first; those of sub-agents too."""
        return await self._approvals.read_pending_approvals()

    async def approve_execution(
        self, execution_id: str, *, by: int | None = None, edited_input: JSONObject | None = None
    ) -> bool:
        """Approve a call: it runs in a turn that goes on by itself, whether or not anybody is connected.

        `by`: the user who decided, for the audit events. `edited_input`: as a person may change it in the page.
        Durability: decision and turn are committed when this returns; a second decision changes nothing and gives
        `False`, as does an id that is unknown or whose time is over. Errors: `EditInvalid`, `CallDecided` for changed
        arguments.
        """
        decision = ExecutionDecision(approved=True, edited_input=edited_input, by=by)
        return await self._approvals.decide_execution(execution_id, decision)

    async def reject_execution(self, execution_id: str, reason: str = "", *, by: int | None = None) -> bool:
        """Deny a call, and let the conversation go on with the reason. Durability and results as above."""
        decision = ExecutionDecision(approved=False, reason=reason, by=by)
        return await self._approvals.decide_execution(execution_id, decision)


class ActionMethods(ApprovalMethods):
    """The hooks of actions: asked before a person is asked about an action, and again when it runs; sync or async.

    A hook that raises, takes too long or gives something else denies.
    """

    host: ApprovalOperations

    @property
    def _approvals(self) -> ApprovalOperations:
        return self.host

    def authorize_turn(self, context: AuthorizationContext) -> Any:  # noqa: ARG002 - the shape that overriders copy
        """Grant permissions in this turn: a collection of their names, `True` for all, `False` for no action at all.

        `None`, the default: what Django's permissions of the user say (`user.has_perm`), read anew each time.
        """
        return None

    def authorize_action(self, context: ActionContext) -> Any:  # noqa: ARG002 - as above
        """Decide about one action: `True` allows it, `False` or a reason for the model denies it.

        `None`, the default: it is allowed when all its permissions are granted (`context.missing` is empty).
        """
        return None
