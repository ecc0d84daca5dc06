"""Questions that wait for a user's decision, over all of the user's conversations. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chat.errors import InputInvalid
from chat.models import AgentInstance, Turn
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.calls.selectors import questions_to
from tools_app.core.questions import Question, question_of, title_of
from tools_app.models import ToolCallRecord

MAX_CURSOR_CHARS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that its owner can decide, with the conversation that it belongs to."""

    call_id: str
    instance_id: str
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


def pending_approvals(owner_id: Any, *, cursor: str = "", limit: int = 50) -> PendingApprovals:
    """The calls that a user can decide now, newest first. Four queries, whatever there is.

    Shape: `cursor` is the former page's `next_cursor`. Errors: `InputInvalid` for a cursor that is none.
    """
    open_rows = questions_to(owner_id)
    rows = open_rows.filter(pk__lt=position(cursor)) if cursor else open_rows
    found = list(rows[: limit + 1])
    page = found[:limit]
    return PendingApprovals(
        items=_views(page, owner_id),
        count=open_rows.count(),
        next_cursor=str(page[-1].pk) if len(found) > limit else None,
    )


def position(cursor: str) -> int:
    """The row that a cursor names. Errors: `InputInvalid`."""
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > MAX_CURSOR_CHARS:
        raise InputInvalid("The cursor is not one of ours.")
    return int(cursor)


def _views(rows: Iterable[ToolCallRecord], owner_id: Any) -> list[PendingApproval]:
    rows = list(rows)
    instances = AgentInstance.objects.filter(pk__in={row.scope for row in rows}, owner_id=owner_id)
    named = {pk: (title, agent) for pk, title, agent in instances.values_list("pk", "title", "agent")}
    turns = Turn.objects.filter(pk__in={row.turn_id for row in rows})
    answers = dict(turns.values_list("pk", "assistant_id"))
    return [
        PendingApproval(
            call_id=row.call_id,
            instance_id=row.scope,
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
