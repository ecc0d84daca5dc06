"""Schemas of what is at work for a person, over all conversations."""

from typing import Annotated, Literal

from ninja import Schema
from pydantic import StringConstraints

from chat.conversations.work import WorkItem
from chat.http.api.schemas.from_values import shows
from chat.http.api.schemas.schedules import ScheduleRunOut

Cursor = Annotated[str, StringConstraints(max_length=160, pattern=r"^[^\x00]*$")]
SectionName = Literal["now", "schedules", "ended"]


@shows(WorkItem)
class WorkItemOut(Schema):
    """A turn, a schedule, or a piece of background work, with its conversation.

    `name`: of a schedule its title or the beginning of its prompt, of background work its method; empty for a turn.
    `status`: that of its kind. `since`: when it began or, before that, was asked for. `next_at`: when it is due.
    `last_run`: of a schedule. `verbs`: what may be asked of it now, by the operations of its kind: `cancel`, `retry`
    (restart) of background work, `pause`, `resume`, `run` of schedules.
    """

    last_run: ScheduleRunOut | None
    verbs: list[Literal["cancel", "pause", "resume", "run", "retry"]]


class WorkPageOut(Schema):
    """A page of a section."""

    items: list[WorkItemOut]
    next_cursor: str | None
