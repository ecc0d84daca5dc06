"""Open a socket late: with all that a client is told at first, so that nothing it sends can come in between.

A client that is open sends at once, and the transcript that it is told at first takes the place of its list: a question
that is sent before the transcript is there would vanish from the list, and the answer come to stand above it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

PATIENCE_SECONDS = 2.0
"""So long a socket waits at most: clients take one that does not open for dead, and come back (after 4 s and more)."""


class Opening:
    """Holds what is sent until `finish`. `accept` and `send` are the socket's own."""

    def __init__(self, accept: Callable[[], Awaitable[None]], send: Callable[[str], Awaitable[None]]) -> None:
        self._accept = accept
        self._send = send
        self._held: deque[str] | None = deque()
        self._is_accepted = False
        self._accepting = asyncio.Lock()
        self._late: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._accept_unfinished)

    async def send(self, text: str) -> None:
        """Send one frame, or keep it for `finish`."""
        if self._held is None:
            await self._send(text)
        else:
            self._held.append(text)

    async def accept(self) -> None:
        """Accept the socket, once."""
        self._timer.cancel()
        async with self._accepting:
            if not self._is_accepted:
                self._is_accepted = True
                await self._accept()

    async def finish(self) -> None:
        """Accept the socket and send what was held, in its order; from then on everything goes out at once."""
        await self.accept()
        while self._held:  # more may come while these go out
            await self._send(self._held.popleft())
        self._held = None

    def _accept_unfinished(self) -> None:
        self._late = asyncio.create_task(self.accept())
