"""Pending decisions for published clients, who call them by the names and in the shapes that they know.

A call counts as the decision of the conversation's owner, as a frame of the same socket does. What it starts runs in a
worker, so no call waits for it. Source: `ActionApprovalDescriptor` and its callables, wire protocol 3.1.
"""

from dataclasses import replace
from typing import Any

from chat.agent.base import InstanceKey
from chat.agent.callables import client_callable
from chat.agent.methods.approvals import ActionMethods
from chat.agent.values.approvals import ExecutionDecision, PendingExecution
from thinkproject.kernel.jsonvalue import JSONObject


class ApprovalCallables(ActionMethods):
    """The same for published clients, under the names that they call: pending decisions of a conversation."""

    key: InstanceKey

    @client_callable(name="pendingApprovals")
    async def send_pending_approvals(self, execution_id: str | None = None) -> list[JSONObject]:
        """Answer `pendingApprovals(executionId?)`: `{executionId, source, descriptor}` of each question."""
        return [
            {
                "executionId": asked.id,
                "source": "codemode" if asked.by_code else "action",
                "descriptor": asked.descriptor,
            }
            for asked in await self._asked(execution_id)
        ]

    @client_callable(name="pendingExecutions")
    async def send_pending_executions(self, execution_id: str | None = None) -> list[JSONObject]:
        """Answer `pendingExecutions(executionId?)`: the calls of code that wait, with their whole arguments."""
        asked = [each for each in await self._asked(execution_id) if each.by_code]
        return [
            {
                "executionId": each.id,
                "seq": int(each.call_id.rpartition(":")[2]),
                "connector": "tools",
                "method": each.tool,
                "args": each.input,
            }
            for each in asked
        ]

    @client_callable(name="approveExecution")
    async def take_approval(self, execution_id: str) -> JSONObject:
        """Answer `approveExecution(executionId)` at once: the call runs in a turn of its own."""
        return await self._decided(execution_id, ExecutionDecision(approved=True), {"status": "approved"})

    @client_callable(name="rejectExecution")
    async def take_rejection(
        self, execution_id: str, reason: str | None = None, options: dict[str, Any] | None = None
    ) -> JSONObject:
        """Answer `rejectExecution(executionId, reason?, {autoContinue?})`."""
        continues = (options or {}).get("autoContinue") is not False
        decision = ExecutionDecision(approved=False, reason=reason or "", continues=continues)
        return await self._decided(execution_id, decision, {"status": "rejected", "reason": reason or ""})

    async def _asked(self, execution_id: str | None) -> list[PendingExecution]:
        asked = await self.instance.approvals.pending()
        return asked if execution_id is None else [each for each in asked if each.id == execution_id]

    async def _decided(self, execution_id: str, decision: ExecutionDecision, outcome: JSONObject) -> JSONObject:
        decision = replace(decision, by=self.key.owner_id, via="socket")
        if await self.instance.approvals.decide(execution_id, decision):
            return {**outcome, "executionId": execution_id}
        error = "It is not waiting any more: decided elsewhere, over, or unknown."
        return {"status": "error", "executionId": execution_id, "error": error}
