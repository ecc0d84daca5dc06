"""Background work of an agent: its own async methods, run durably by a worker. `docs/howto/background-work.md`.

class Reports(Agent):
    async def build(self, payload, fiber):
        rows = fiber.snapshot or await collect(payload["month"])
        await fiber.stash(rows)
        return await render(rows)

fiber_id = await agent.spawn_fiber("build", {"month": "2026-11"})
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, ClassVar

from chat.agent.ports import InstancePort
from chat.agent.values.background import CompletedFiber, FiberFunction, FiberInspection, FiberStart, LostFiber, R
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


class FiberMethods:
    """Background work of one conversation. Agents and `AgentHandle` share these methods."""

    instance: InstancePort

    async def spawn_fiber(self, method: str, payload: JSONValue = None, *, max_retries: int = 3) -> str:
        """Start a public async method of the agent in the background; give the fiber's id.

        A worker calls `method(payload, fiber)` on a fresh object; a method may take fewer arguments. When it raises it
        runs again at once with the last snapshot, `max_retries` times; a lost worker counts as a retry, too.
        Durability: committed when this returns; the method runs at least once. Errors: `FiberMethodMissing` when the
        class has no such method, `FiberInvalid`, `QuotaExceeded`; then nothing was stored.
        """
        start = FiberStart(method=method, payload=payload, max_retries=max_retries, is_spawned=True)
        return (await self.instance.background.start(start)).id

    async def start_fiber(
        self,
        method: str,
        payload: JSONValue = None,
        *,
        fiber_id: str | None = None,
        idempotency_key: str | None = None,
        metadata: JSONObject | None = None,
        wait_for_completion: bool = False,
    ) -> FiberInspection:
        """Start a public async method in the background under an id and a key of your own, once.

        The same id or key again gives the fiber that has it, with `accepted=False`. It is not tried again when it
        raises. `wait_for_completion`: return when it has ended, however it has. Durability and errors as
        `spawn_fiber`, and `FiberConflict` when id and key belong to two fibers.
        """
        start = FiberStart(
            method=method,
            payload=payload,
            fiber_id=fiber_id,
            idempotency_key=idempotency_key,
            metadata=metadata,
        )
        return await self.instance.background.start(start, waits=wait_for_completion)

    async def run_fiber(self, name: str, function: FiberFunction[R], *, metadata: JSONObject | None = None) -> R:
        """Run a function here, in this process, and give what it returns; a row stands for it while it runs.

        The function may take a `RunningFiber`. When the process dies, `on_fiber_recovered` gets the name and the
        snapshot. Errors: those of the function; `FiberStopped` when the fiber was cancelled.
        """
        return await self.instance.background.run(name, function, metadata=metadata)

    async def stash_fiber(self, data: JSONValue) -> None:
        """Replace the snapshot of the fiber that is running here. Errors: `OutsideFiber`."""
        await self.instance.background.stash(data)

    async def stash(self, data: JSONValue) -> None:
        """Do the same: the later name."""
        await self.instance.background.stash(data)

    async def get_fiber(self, fiber_id: str) -> FiberInspection | None:
        """Read a fiber; `None` where there is none."""
        return await self.instance.background.find(fiber_id)

    async def inspect_fiber(self, fiber_id: str) -> FiberInspection | None:
        """Do the same: the later name."""
        return await self.instance.background.find(fiber_id)

    async def inspect_fiber_by_key(self, idempotency_key: str) -> FiberInspection | None:
        """Read the fiber with this idempotency key."""
        return await self.instance.background.find(key=idempotency_key)

    async def list_fibers(self, *, statuses: Collection[str] = (), limit: int = 50) -> list[FiberInspection]:
        """Read the fibers of this conversation, newest first: at most `limit`, which is at most 100."""
        return await self.instance.background.newest(statuses, limit)

    async def cancel_fiber(self, fiber_id: str) -> bool:
        """Stop a fiber; `False` when it is unknown or has ended. One that runs gets an `asyncio.CancelledError`.

        After `True` it ends as cancelled, whatever the method still returns.
        """
        return await self.instance.background.cancel(fiber_id)

    async def cancel_fiber_by_key(self, idempotency_key: str) -> bool:
        """Stop the fiber with this idempotency key."""
        return await self.instance.background.cancel(key=idempotency_key)

    async def restart_fiber(self, fiber_id: str) -> FiberInspection:
        """Run a failed or interrupted fiber again, with its payload and its last snapshot.

        One that is under way stays as it is. Errors: `FiberNotFound`; `FiberConflict` for one that was completed or
        cancelled, or whose function died with its process.
        """
        return await self.instance.background.restart(fiber_id)

    async def resolve_fiber(
        self, fiber_id: str, status: str, *, result: JSONValue = None, error: str | None = None
    ) -> bool:
        """Say how an interrupted fiber has ended: `completed`, `failed` or `cancelled`. `False` for any other fiber.

        Errors: `FiberInvalid` for another status.
        """
        return await self.instance.background.resolve(fiber_id, status, result=result, error=error)

    async def delete_fibers(
        self,
        *,
        statuses: Collection[str] | None = None,
        ids: Sequence[str] | None = None,
        older_than_seconds: float = 0.0,
        limit: int = 500,
    ) -> int:
        """Delete fibers that have ended, the oldest first, at most `limit` and 500; give how many.

        Interrupted ones are kept unless `statuses` names them.
        """
        return await self.instance.background.delete(
            statuses=statuses, ids=ids, older_than_seconds=older_than_seconds, limit=limit
        )

    async def check_fibers(self) -> list[FiberInspection]:
        """Take up the fibers of this conversation whose workers were lost, now; give them, oldest first.

        It happens by itself where the class has `fibers`. Hooks run here: `on_fibers_recovered`, `on_fiber_recovered`.
        """
        return await self.instance.background.check()

    async def keep_alive(self) -> Callable[[], Awaitable[None]]:
        """Show that the conversation is at work, by a fiber `keep_alive`; calling what is returned ends it.

        Counted: one row for each process, however many ask. No worker of ours stops because no client is there,
        so code needs this only to be seen.
        """
        return await self.instance.background.keep_alive()

    async def keep_alive_while(self, function: FiberFunction[R]) -> R:
        """Run a function, and show meanwhile that the conversation is at work."""
        release = await self.instance.background.keep_alive()
        try:
            return await function()
        finally:
            await release()


class FiberDeclarations(FiberMethods):
    """The declarations of a class about background work."""

    fibers: ClassVar[bool] = True
    """Whether background work whose worker was lost is taken up again by itself. Where it is `False`, it stays
    interrupted until `check_fibers` or `restart_fiber` is called. The methods are there either way."""

    def on_fiber_complete(self, context: CompletedFiber) -> Any:
        """Run after a fiber has completed and its result is stored, at least once. Its errors are logged."""

    async def on_fibers_recovered(self, fibers: list[LostFiber]) -> None:
        """Run for the fibers whose workers were lost, oldest first; by default `on_fiber_recovered` for each.

        Those it does not start again stay interrupted. When it raises it runs again later.
        """
        for fiber in fibers:
            await self.on_fiber_recovered(fiber)

    async def on_fiber_recovered(self, fiber: LostFiber) -> None:
        """Run for a fiber whose worker was lost; by default it is run again where it can be."""
        if fiber.can_restart:
            await self.restart_fiber(fiber.id)
