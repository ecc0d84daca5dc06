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


class FiberOut(Schema):
    """Background work of a conversation's agent. `fiber_id`: the id that the agent gave it, or the same as `id`.

    `reason`: one word about its status, such as `method_missing` (no worker has its method now: it waits for one) or
    `worker_lost`. `can_restart`, `can_resolve`: what may be asked of it now.
    """

    id: str
    fiber_id: str
    method: str
    status: FiberStatusName
    reason: str
    result: JSONValue
    error: FiberErrorOut | None
    retry_count: int
    max_retries: int
    attempts: int
    metadata: JSONObject
    idempotency_key: str | None
    can_restart: bool
    can_resolve: bool
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None


class FibersQuery(Schema):
    """Filter of the list of background work."""

    status: FiberStatusName | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class FiberResolution(Input):
    """The end of interrupted work. `error`: for one that failed."""

    status: Literal["completed", "failed", "cancelled"]
    result: JSONValue = None
    error: Text | None = None
