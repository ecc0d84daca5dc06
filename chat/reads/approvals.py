"""Questions that wait for a user's decision, over all conversations that the user is in. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from chat.agent.base import Agent
from chat.agent.registry import registered_classes
from chat.agent.think import Think
from chat.errors import InputInvalid
from chat.members import policy
from chat.members.selectors import scopes_shared_with
from chat.models import AgentInstance, Role, Turn
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.calls.selectors import questions_to, questions_within
from tools_app.core.questions import Question, question_of, title_of
from tools_app.models import ToolCallRecord

MAX_CURSOR_CHARS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that the user can decide, with the conversation that it belongs to. `is_own`: it is the user's own."""

    call_id: str
    instance_id: str
    is_own: bool
    title: str
    agent: str
    message_id: str
    tool: str
    question: Question
    input: JSONValue
    requested_at: datetime
    expires_at: datetime | None

    @property
    def tool_title(self) -> str:
        """The tool's name for people."""
        return title_of(self.tool, self.question.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApprovals:
    """A page of them, newest first. `count`: over all pages; `next_cursor`: nothing at the end."""

    items: list[PendingApproval]
    count: int
    next_cursor: str | None


def pending_approvals(user_id: Any, *, cursor: str = "", limit: int = 50) -> PendingApprovals:
    """The calls that a user can decide now, also in conversations that others share with them, newest first.

    Four queries, whatever there is. Shape: `cursor` is the former page's `next_cursor`. Errors: `InputInvalid` for a
    cursor that is none.
    """
    sides = _answerable(user_id)
    before = [rows.filter(pk__lt=position(cursor)) for rows in sides] if cursor else sides
    found = list(_joined(before).order_by("-pk")[: limit + 1])
    page = found[:limit]
    return PendingApprovals(
        items=_views(page, user_id),
        count=_joined(sides).count(),
        next_cursor=str(page[-1].pk) if len(found) > limit else None,
    )


def _joined(sides: list[QuerySet[ToolCallRecord]]) -> QuerySet[ToolCallRecord]:
    """Two index scans, where a condition with `or` would read the table."""
    own, shared = (rows.order_by() for rows in sides)
    return own.union(shared, all=True)


def _answerable(user_id: Any) -> list[QuerySet[ToolCallRecord]]:
    """The questions of one's own conversations, and those of others that one's role lets one answer."""
    deleted = AgentInstance.everything.filter(owner_id=user_id, deleted_at__isnull=False).values("pk")
    own = questions_to(user_id).exclude(scope__in=deleted)
    shared = questions_within(scopes_shared_with(user_id, Role.APPROVER))
    return [_let_by_class(own, author=""), _let_by_class(shared, author=str(user_id))]


def _let_by_class(rows: QuerySet[ToolCallRecord], author: str) -> QuerySet[ToolCallRecord]:
    """Leave out what the class of an agent has others answer (`approved_by`). `author`: of this person's turns."""
    for rule in (policy.REQUESTER, policy.ANOTHER):
        agents = [cls.route_name() for cls in registered_classes() if _approved_by(cls) == rule]
        if agents:
            turns = Turn.objects.filter(pk=OuterRef("turn_id"), instance__agent__in=agents)
            others = turns.exclude(author=author) if rule == policy.REQUESTER else turns.filter(author=author)
            rows = rows.exclude(Exists(others))
    return rows


def _approved_by(cls: type[Agent]) -> str:
    return cls.approved_by if issubclass(cls, Think) else policy.ANY_APPROVER


def position(cursor: str) -> int:
    """The row that a cursor names. Errors: `InputInvalid`."""
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > MAX_CURSOR_CHARS:
        raise InputInvalid("The cursor is not one of ours.")
    return int(cursor)


def _views(rows: Iterable[ToolCallRecord], user_id: Any) -> list[PendingApproval]:
    rows = list(rows)
    instances = AgentInstance.objects.filter(pk__in={row.scope for row in rows})
    facts = instances.values_list("pk", "title", "agent", "owner_id")
    named = {pk: (title, agent, owner_id) for pk, title, agent, owner_id in facts}
    turns = Turn.objects.filter(pk__in={row.turn_id for row in rows})
    answers = dict(turns.values_list("pk", "assistant_id"))
    return [
        PendingApproval(
            call_id=row.call_id,
            instance_id=row.scope,
            is_own=named[row.scope][2] == user_id,
            title=named[row.scope][0],
            agent=named[row.scope][1],
            message_id=answers[row.turn_id],
            tool=row.tool_name,
            question=question_of(row.question),
            input=row.input,
            requested_at=row.created_at,
            expires_at=row.expires_at,
        )
        for row in rows
        if row.scope in named and row.turn_id in answers  # deleted at this moment, with its questions
    ]
