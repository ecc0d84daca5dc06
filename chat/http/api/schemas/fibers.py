"""Schemas of background work."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from chat.http.api.schemas.common import Input, Text
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

FiberStatusName = Literal["pending", "running", "parked", "completed", "failed", "cancelled", "interrupted"]


class FiberErrorOut(Schema):
    """Why background work failed. What an agent's code raises is in the log alone: then `code` is `internal`."""

    code: str
    message: str


class FiberWaitOut(Schema):
    """Something that parked work waits for. `label`: in words for people, mostly. `since`: when the wait began."""

    kind: str
    label: str
    since: datetime | None


class FiberOut(Schema):
    """Background work of a conversation's agent. `fiber_id`: the id that the agent gave it, or the same as `id`.

    `reason`: one word about its status, such as `method_missing` (no worker has its method now: it waits for one) or
    `worker_lost`. `waits`: of parked work alone. `not_before`: when pending work is due, as after an error.
    `can_restart`, `can_resolve`: what may be asked of it now. `is_stopping`: it was stopped while it ran and has not
    ended. A call of a tool that runs in another process is background work, too: `method` is its tool, `call_id`
    its call, `progress` the last report while it runs.
    """

    id: str
    fiber_id: str
    method: str
    status: FiberStatusName
    reason: str
    result: JSONValue
    progress: JSONObject | None
    call_id: str | None
    error: FiberErrorOut | None
    retry_count: int
    max_retries: int
    attempts: int
    metadata: JSONObject
    idempotency_key: str | None
    can_restart: bool
    can_resolve: bool
    is_stopping: bool
    waits: list[FiberWaitOut]
    not_before: datetime | None
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None


class FiberEntryOut(Schema):
    """A line of the journal of background work. `step`: name of the step that was settled; what it gave is not shown.

    `kind`: `lost` is a worker that was lost while it ran; `count` says how often one after the other, up to `at`.
    """

    kind: Literal["created", "started", "step", "lost", "stop_requested", "ended"]
    at: datetime
    step: str = ""
    attempt: int | None = None
    count: int = 1


class FibersQuery(Schema):
    """Filter of the list of background work."""

    status: FiberStatusName | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class FiberResolution(Input):
    """The end of interrupted work. `error`: for one that failed."""

    status: Literal["completed", "failed", "cancelled"]
    result: JSONValue = None
    error: Text | None = None
