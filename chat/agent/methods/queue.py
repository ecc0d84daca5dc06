"""The queue of an agent: calls of its own async methods that run one at a time, in order, in a worker.

await self.queue("send_letter", {"to": "board"}, retry=RetryPolicy(attempts=5))
"""

from chat.agent.ports import InstancePort
from chat.agent.values.background import QueuedCall
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.retry import RetryPolicy


class QueueMethods:
    """The queue of one conversation. Agents and `AgentHandle` share these methods."""

    instance: InstancePort

    async def queue(self, method: str, payload: JSONValue = None, *, retry: RetryPolicy | None = None) -> str:
        """Append a call of a public async method of the agent to its queue; give the call's id.

        A worker calls `method(payload, fiber)` once every call before it has ended; a method may take fewer arguments.
        `retry`: how often a method that raises is tried, by default three times; the calls behind it wait meanwhile.
        Then the call has failed, and the next one runs.
        Durability: committed when this returns; the method runs at least once, and tries are counted across restarts.
        Errors: `FiberMethodMissing` when the class has no such method, `FiberInvalid`, `QuotaExceeded`; then nothing
        was stored.
        """
        return await self.instance.queue.append(method, payload, retry)

    async def dequeue(self, call_id: str) -> bool:
        """Take a call out of the queue. `False` when it is unknown, has ended, or runs: `cancel_fiber` stops that."""
        return await self.instance.queue.take_out(call_id=call_id) == 1

    async def dequeue_all(self) -> int:
        """Take out all calls that wait; give how many. One that runs goes on."""
        return await self.instance.queue.take_out()

    async def dequeue_all_by_method(self, method: str) -> int:
        """Take out all calls of a method that wait; give how many."""
        return await self.instance.queue.take_out(method=method)

    async def get_queue(self, call_id: str) -> QueuedCall | None:
        """Read a call that stands in the queue; `None` for one that is unknown or has ended."""
        return next(iter(await self.instance.queue.calls(call_id)), None)

    async def get_queues(self, key: str | None = None, value: JSONValue = None) -> list[QueuedCall]:
        """Read the calls in the queue, the next first; with a key, those whose payload is an object with this value."""
        found = await self.instance.queue.calls()
        return found if key is None else [call for call in found if _has(call.payload, key, value)]


def _has(payload: JSONValue, key: str, value: JSONValue) -> bool:
    return isinstance(payload, dict) and key in payload and payload[key] == value
