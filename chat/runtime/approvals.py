"""Pending decisions of a conversation, for code of the server: the same services as for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from chat.agent.base import InstanceKey
from chat.agent.values.approvals import ExecutionDecision, PendingExecution
from chat.errors import CallNotFound
from chat.instances.rows import find_instance, key_of
from chat.models import AgentInstance, Turn
from chat.runtime.decision_links import make_token, path_of
from chat.turns.admission.continuation import Replied, reply_to_call
from chat.turns.admission.tool_answers import Reply
from thinkproject.kernel.aio import db
from tools_app.calls.selectors import find_question, questions_to
from tools_app.calls.services import Actor
from tools_app.core.questions import question_of, title_of
from tools_app.core.tool_calls import ToolCall
from tools_app.models import ToolCallRecord


@dataclass(frozen=True, slots=True)
class InstanceApprovals:
    """The pending decisions of an instance, for agents and code."""

    key: InstanceKey

    async def pending(self) -> list[PendingExecution]:
        """The questions that can be decided here and in sub-agents, oldest first."""
        return await db(_pending, self.key)

    async def reply(self, asked: PendingExecution, reply: Reply, *, via: str) -> tuple[Replied, Turn | None]:
        """Answer one of them as the owner: the outcome, and the turn that was parked for the answer.

        Errors: those of `reply_to_call`.
        """
        return await db(_reply, self.key.owner_id, asked, reply, via)

    async def decide(self, execution_id: str, decision: ExecutionDecision) -> bool:
        """Decide one of them; false when it was decided before, or is over."""
        return await db(_decide, self.key, execution_id, decision)

    async def link(self, execution_id: str, *, approves: bool, user_id: Any, hours: float) -> str:
        """Make a link that decides one of them: its path. Errors: `CallNotFound`; those of `make_token`."""
        return await db(partial(_link, self.key, execution_id, approves=approves, user_id=user_id, hours=hours))


def _link(key: InstanceKey, execution_id: str, *, approves: bool, user_id: Any, hours: float) -> str:
    row, _asking = _asked(key, execution_id)
    if row is None:
        raise CallNotFound
    return path_of(make_token(row, approves=approves, user_id=user_id, hours=hours))


def _pending(key: InstanceKey) -> list[PendingExecution]:
    rows = list(questions_to(key.owner_id).order_by("pk"))
    asking = _within(key, {row.scope for row in rows})
    return [_view(row, asking[row.scope]) for row in rows if row.scope in asking]


def _within(key: InstanceKey, scopes: Iterable[str]) -> dict[str, AgentInstance]:
    """Of some instances those that are this one or one of its sub-agents, however deep."""
    lineage = [[each.agent, each.name] for each in (*key.ancestors, key)]
    rows = AgentInstance.objects.filter(pk__in=set(scopes), owner_id=key.owner_id)
    return {row.pk: row for row in rows if [*row.ancestors, [row.agent, row.name]][: len(lineage)] == lineage}


def _asked(key: InstanceKey, execution_id: str) -> tuple[ToolCallRecord | None, AgentInstance | None]:
    """A question of this instance or of a sub-agent, with who asks it; nothing for one of another's."""
    own = find_instance(key)
    row = None if own is None else find_question(own.pk, execution_id)
    row = row or questions_to(key.owner_id).filter(approval_id=execution_id).first()
    asking = None if row is None else _within(key, [row.scope]).get(row.scope)
    return (None, None) if asking is None else (row, asking)


def _decide(key: InstanceKey, execution_id: str, decision: ExecutionDecision) -> bool:
    row, asking = _asked(key, execution_id)
    if row is None or asking is None:
        return False
    reply = Reply(
        call_id=row.call_id,
        approval_id=execution_id,
        is_approved=decision.approved,
        reason=decision.reason,
        edited_input=decision.edited_input,
        continues=decision.continues,
    )
    return reply_to_call(key_of(asking), reply, Actor(user_id=decision.by, via=decision.via)).is_new


def _reply(user_id: int | None, asked: PendingExecution, reply: Reply, via: str) -> tuple[Replied, Turn | None]:
    asking = AgentInstance.objects.get(pk=asked.instance_id)
    row = ToolCallRecord.objects.get(approval_id=asked.id)
    replied = reply_to_call(key_of(asking), reply, Actor(user_id=user_id, via=via))
    return replied, Turn.objects.filter(pk=row.turn_id).first() if asked.by_code else None


def _view(row: ToolCallRecord, asking: AgentInstance) -> PendingExecution:
    question = question_of(row.question)
    call = ToolCall(call_id=row.call_id, tool_name=row.tool_name, input=row.input)
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
        instance_id=asking.pk,
        agent=asking.agent,
        by_code=bool(row.wait_key),
        descriptor=question.described(call),
    )
