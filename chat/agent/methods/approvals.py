"""Approvals by code of the server, and the hooks that say what actions may do.

`Think` and `AgentHandle` share the methods: a chat message with two buttons, an e-mail with a link or a page of one's
own decides by them, with no browser tab open.
"""

from typing import Any

from chat.agent.ports import InstancePort
from chat.agent.values.approvals import ExecutionDecision, PendingExecution
from chat.core.loop.hooks import ActionContext, AuthorizationContext
from thinkproject.kernel.jsonvalue import JSONObject


class ApprovalMethods:
    """Pending decisions of a conversation. See `docs/howto/take-actions.md`."""

    instance: InstancePort

    async def pending_approvals(self) -> list[PendingExecution]:
        """Read the calls that wait for a person's decision, oldest first; those of sub-agents too."""
        return await self.instance.approvals.pending()

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
        return await self.instance.approvals.decide(execution_id, decision)

    async def reject_execution(self, execution_id: str, reason: str = "", *, by: int | None = None) -> bool:
        """Deny a call, and let the conversation go on with the reason. Durability and results as above."""
        decision = ExecutionDecision(approved=False, reason=reason, by=by)
        return await self.instance.approvals.decide(execution_id, decision)

    async def decision_path(self, execution_id: str, *, approves: bool, user_id: Any, hours: float = 24.0) -> str:
        """Make a link that decides one call, for a letter or a notification of yours: its path on this site.

        It shows that person what it decides, and asks for a click; it works once, for exactly the arguments that were
        asked about, and for no other person. Units: `hours`, at most a week. Errors: `CallNotFound` for an unknown id;
        `CallDecided`; `InputInvalid`.
        """
        return await self.instance.approvals.link(execution_id, approves=approves, user_id=user_id, hours=hours)


class ActionMethods(ApprovalMethods):
    """The hooks of actions: asked before a person is asked about an action, and again when it runs; sync or async.

    A hook that raises, takes too long or gives something else denies.
    """

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
