"""Background work as agents and their callers see it: fibers, and the calls of a queue. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

R = TypeVar("R")

FiberFunction = Callable[..., Awaitable[R]]
"""Takes a `RunningFiber`, or nothing."""


class RunningFiber(Protocol):
    """A fiber as the code that it runs sees it. `retry_count`: failed and lost runs before this one."""

    id: str
    method: str
    payload: JSONValue
    snapshot: JSONValue
    retry_count: int
    attempt: int
    metadata: JSONObject
    idempotency_key: str | None

    async def stash(self, data: JSONValue) -> None:
        """Replace the snapshot, which the next run finds. Durable when it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberInspection:
    """A fiber as it stands.

    `status`: pending, running, parked, completed, failed, cancelled or interrupted; `reason`: one word about it, such
    as `method_missing` or `worker_lost`. `error`: `{"code", "message", "retryable"}`. `accepted`: false where it had
    been started before.
    """

    id: str
    method: str
    payload: JSONValue
    status: str
    reason: str
    snapshot: JSONValue
    result: JSONValue
    error: JSONObject | None
    retry_count: int
    max_retries: int
    attempts: int
    metadata: JSONObject
    idempotency_key: str | None
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None
    accepted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedFiber:
    """A fiber that has completed, as `on_fiber_complete` gets it."""

    id: str
    method: str
    payload: JSONValue
    result: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFiber:
    """A fiber whose worker was lost. `can_restart`: false for one of `run_fiber`, whose function died with it."""

    id: str
    method: str
    payload: JSONValue
    snapshot: JSONValue
    retry_count: int
    can_restart: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberStart:
    """The choices of a caller about a new fiber."""

    method: str
    payload: JSONValue
    max_retries: int = 0
    fiber_id: str | None = None
    idempotency_key: str | None = None
    metadata: JSONObject | None = None
    is_spawned: bool = False  # of `spawn_fiber`: it is tried again, and lost runs count as retries


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedCall:
    """A call that stands in the queue. `status`: pending or running; `retry_count`: failed runs so far."""

    id: str
    method: str
    payload: JSONValue
    status: str
    retry_count: int
    max_retries: int
    created_at: datetime
