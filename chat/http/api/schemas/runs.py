"""Schemas of runs: agents that work for another one."""

from typing import Literal

from ninja import Schema

from chat.http.api.schemas.from_values import shows
from chat.sub_agents.views import RunView


@shows(RunView, without={"turn_is_final", "progress_at"})
class RunOut(Schema):
    """A run of an agent for a conversation. `run_id`: the caller's own id of it; `id` is ours.

    `call_id`: the tool call that started it, empty where code did. `display`: how clients show it, such as
    `{"name": "Researcher"}`. `input_preview`: the beginning of what it was given. `is_detached`: no call waits for it.
    `parent_id`, `child_id`: the conversations of both sides; the child's is null once it was deleted. `status`:
    `starting`, `running` or `waiting` (for a person, mostly) while it is under way, then that of the outcome:
    `completed`, `error`, `aborted`, `skipped` or `interrupted`. `progress`: the last that it reported, such as
    `{"fraction": 0.5, "message": "Reading"}`. `outcome`: what the parent was given. `turn_count`, `cost`: of the
    child's whole conversation. `question_count`: questions of the child that wait for an answer.
    """

    status: Literal["starting", "running", "waiting", "completed", "error", "aborted", "skipped", "interrupted"]


class RunPageOut(Schema):
    """A page of runs, newest first. `next_cursor`: for the next page, null at the end."""

    items: list[RunOut]
    next_cursor: str | None


class RunTreeOut(Schema):
    """Runs of a conversation and those below them, level by level, each newest first.

    The `parent_id` of a run below is the `child_id` of one above. `is_complete`: false where there are more.
    """

    items: list[RunOut]
    is_complete: bool


class StopOut(Schema):
    """`stopped`: false when the run had ended."""

    stopped: bool
