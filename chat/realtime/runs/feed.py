"""The runs of other agents that one connection of their parent is sent: the newest on connecting, then each new one.

Every run that is under way is followed by a task of its own, which lives as long as the run and the connection do. A
child's chunks are read only where a client of its parent is connected.
"""

from collections.abc import Awaitable, Callable

from chat.agent.base import InstanceKey
from chat.core.wire.recent_set import RecentSet
from chat.realtime.deliveries import Deliveries
from chat.realtime.runs.relay import RunRelay
from chat.sub_agents import views as runs
from chat.sub_agents.views import RunView
from thinkproject.kernel.aio import db


class RunFeed:
    """The runs of one connection. Every method may be called again for the same run."""

    def __init__(
        self, key: InstanceKey, send: Callable[[str], Awaitable[None]], *, give_up: Callable[[], Awaitable[None]]
    ) -> None:
        """`give_up`: closes the connection, whose client connects again and is sent the runs from their beginning."""
        self._key = key
        self._send = send
        self._deliveries = Deliveries(give_up)
        self._known = RecentSet[str]()  # rows of the runs that this connection has been sent, or is about to be
        self._relays: dict[str, RunRelay] = {}  # of those, the ones that are under way
        self.count = 0  # runs that the conversation had when they were last read

    def open(self, *, has_runs: bool) -> None:
        """Send the newest runs again, in the background: those that have ended in their order, the others live on."""
        if has_runs:
            self._deliveries.start(self._replay())

    async def close(self) -> None:
        """Stop. The runs go on without this connection."""
        await self._deliveries.close()

    async def changed(self, pk: str) -> None:
        """A run was started or has ended. `pk`: key of its row."""
        relay = self._relays.get(pk)
        if relay is not None:
            relay.changed()
        elif pk not in self._known:
            found = await db(runs.find_run, self._key, pk)
            if found is not None and self._take(found):
                self.count += 1
                self._follow(found, is_replay=False)

    async def catch_up(self) -> None:
        """Read the runs again: the notification of one was lost."""
        for run in await self._read():
            if self._take(run):
                self._follow(run, is_replay=False)

    async def _replay(self) -> None:
        ended = []
        for run in await self._read():
            if self._take(run):
                if run.outcome is None:
                    self._follow(run, is_replay=True)
                else:
                    ended.append(run)
        for run in ended:
            await RunRelay(run, self._send, is_replay=True).serve()

    async def _read(self) -> list[RunView]:
        def read() -> tuple[int, list[RunView]]:
            return runs.count_runs(self._key), runs.newest_runs(self._key)

        self.count, found = await db(read)
        return found

    def _take(self, run: RunView) -> bool:
        """Whether the run is still to be sent; from now on it is not."""
        is_new = run.id not in self._known
        self._known.add(run.id)
        return is_new

    def _follow(self, run: RunView, *, is_replay: bool) -> None:
        relay = RunRelay(run, self._send, is_replay=is_replay)
        self._relays[run.id] = relay
        self._deliveries.start(self._serve(run.id, relay))

    async def _serve(self, pk: str, relay: RunRelay) -> None:
        try:
            await relay.serve()
        finally:
            self._relays.pop(pk, None)
