"""The queue of an agent: calls of its own async methods that run one at a time, in order, in a worker.

await self.queue("send_letter", {"to": "board"}, retry=RetryPolicy(attempts=5))
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.retry import RetryPolicy


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


class QueueOperations(Protocol):
    """The operations on the queue of one conversation, as the methods call them."""

    async def queue_call(self, method: str, payload: JSONValue, retry: RetryPolicy | None) -> str:
        """Append a call; give its id. Errors: `FiberInvalid`, `QuotaExceeded`."""
        ...

    async def dequeue_calls(self, *, call_id: str | None = None, method: str | None = None) -> int:
        """Take out calls that wait; give how many."""
        ...

    async def queued_calls(self, call_id: str | None = None) -> list[QueuedCall]:
        """Read the calls that have not ended, the next first."""
        ...


class QueueMethods:
    """The queue of one conversation. Agents and `AgentHandle` share these methods."""

    host: Any

    @property
    def _queue(self) -> QueueOperations:
        return cast("QueueOperations", self.host)

    async def queue(self, method: str, payload: JSONValue = None, *, retry: RetryPolicy | None = None) -> str:
        """Append a call of a public async method of the agent to its queue; give the call's id.

        A worker calls `method(payload, fiber)` once every call before it has ended; a method may take fewer arguments.
        `retry`: how often a method that raises is tried, by default three times; the calls behind it wait meanwhile.
        Then the call has failed, and the next one runs.
        Durability: committed when this returns; the method runs at least once, and tries are counted across restarts.
        Errors: `FiberMethodMissing` when the class has no such method, `FiberInvalid`, `QuotaExceeded`; then nothing
        was stored.
        """
        return await self._queue.queue_call(method, payload, retry)

    async def dequeue(self, call_id: str) -> bool:
        """Take a call out of the queue. `False` when it is unknown, has ended, or runs: `cancel_fiber` stops that."""
        return await self._queue.dequeue_calls(call_id=call_id) == 1

    async def dequeue_all(self) -> int:
        """Take out all calls that wait; give how many. One that runs goes on."""
        return await self._queue.dequeue_calls()

    async def dequeue_all_by_method(self, method: str) -> int:
        """Take out all calls of a method that wait; give how many."""
        return await self._queue.dequeue_calls(method=method)

    async def get_queue(self, call_id: str) -> QueuedCall | None:
        """Read a call that stands in the queue; `None` for one that is unknown or has ended."""
        return next(iter(await self._queue.queued_calls(call_id)), None)

    async def get_queues(self, key: str | None = None, value: JSONValue = None) -> list[QueuedCall]:
        """Read the calls in the queue, the next first; with a key, those whose payload is an object with this value."""
        found = await self._queue.queued_calls()
        return found if key is None else [call for call in found if _has(call.payload, key, value)]


def _has(payload: JSONValue, key: str, value: JSONValue) -> bool:
    return isinstance(payload, dict) and key in payload and payload[key] == value
