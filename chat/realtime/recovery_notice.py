"""Recovery notices of one connection: one on opening, then those announced by workers."""

from collections.abc import Awaitable, Callable

from chat.core.wire import frames


class RecoveryNotice:
    """Tracks the turn that a client believes to be recovering. A silent worker's notice may be a false alarm."""

    def __init__(self, send: Callable[[str], Awaitable[None]]) -> None:
        self._send = send
        self._announced = ""  # the request whose recovery this client was notified of on connect
        self._after_replay = ""

    async def begin(self, request_id: str) -> None:
        """Send that a turn is recovering. Its next live chunk ends that, whichever worker writes it."""
        self._announced = request_id
        await self._send(frames.recovering(True, request_id))

    def begin_after_replay(self, request_id: str) -> None:
        """Send it after the replay: clients take a replay for the end of the recovery."""
        self._after_replay = request_id

    async def replay_completed(self, request_id: str) -> None:
        """Send the notice that waited for the replay."""
        if request_id == self._after_replay:
            self._after_replay = ""
            await self.begin(request_id)

    async def went_on(self, request_id: str) -> None:
        """End a false alarm before a live chunk is sent."""
        if request_id == self._announced:
            self._announced = ""
            await self._send(frames.recovering(False, request_id))

    async def announced(self, request_id: str, *, is_recovering: bool) -> None:
        """Forward the worker's announcements of a recovery, including its end."""
        self._announced = self._after_replay = ""
        await self._send(frames.recovering(is_recovering, request_id))
