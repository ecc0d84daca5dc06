"""Pending decisions of a conversation, for code of the server: the same services as for people."""

from functools import partial

from chat.agent.approval_methods import PendingExecution
from chat.agent.base import InstanceKey
from chat.instances.rows import find_instance
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.tool_answers import Reply
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.questions import question_of, title_of
from tools_app.models import ToolCallRecord
from tools_app.selectors import find_question, questions_in
from tools_app.services import Actor


class ApprovalsHost:
    """The pending decisions of the instance of a host."""

    key: InstanceKey

    async def read_pending_approvals(self) -> list[PendingExecution]:
        """The questions that can be decided, oldest first."""
        return await db(_pending, self.key)

    async def decide_execution(
        self, execution_id: str, *, approved: bool, reason: str, edited_input: JSONObject | None, by: int | None
    ) -> bool:
        """Decide one of them; false when it was decided before, or is over."""
        decide = partial(_decide, self.key, execution_id, approved=approved, reason=reason, edited=edited_input, by=by)
        return await db(decide)


def _pending(key: InstanceKey) -> list[PendingExecution]:
    instance = find_instance(key)
    return [] if instance is None else [_view(row) for row in questions_in(instance.pk)]


def _decide(
    key: InstanceKey, execution_id: str, *, approved: bool, reason: str, edited: JSONObject | None, by: int | None
) -> bool:
    instance = find_instance(key)
    row = None if instance is None else find_question(instance.pk, execution_id)
    if row is None:
        return False
    reply = Reply(
        call_id=row.call_id,
        approval_id=execution_id,
        is_approved=approved,
        reason=reason,
        edited_input=edited,
    )
    return reply_to_call(key, reply, Actor(user_id=by, via="server")).is_new


def _view(row: ToolCallRecord) -> PendingExecution:
    question = question_of(row.question)
    return PendingExecution(
        id=row.approval_id,
        call_id=row.call_id,
        tool=row.tool_name,
        title=title_of(row.tool_name, question.title),
        sentence=question.sentence,
        risk=question.risk,
        input=row.input,
        may_edit=question.may_edit,
        requested_at=row.created_at,
        expires_at=row.expires_at,
    )
