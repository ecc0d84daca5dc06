"""A connection to one address: a WebSocket that is opened again whenever it is lost, until the server refuses for good.

It knows frames as text and nothing of what they say. Each connection has a number; what was sent over an earlier one is
never taken for sent over the present one.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from chat.client.bounded_queue import Backpressure
from chat.client.errors import ClientClosed, ClientError, ConnectionFailed, Disconnected, is_refusal, refusal_of
from chat.client.options import Options

logger = logging.getLogger(__name__)

TOO_LARGE = 1009
STEADY_SECONDS = 5.0
"""A connection that lasted this long was a good one; the next attempt is a first one again."""

_RESTARTS = (1001, 1012)  # the server goes away or begins anew: another one is there, or will be at once
_TRIED_AGAIN = (408, 425, 429)


class Connection:
    """Keeps a connection. `on_text` gets each frame, `on_lost` the end of each connection (with its close code)."""

    def __init__(
        self,
        url: str,
        *,
        headers: dict[str, str],
        options: Options,
        backpressure: Backpressure,
        on_text: Callable[[str], Awaitable[None]],
        on_lost: Callable[[int | None], None],
    ) -> None:
        self.number = 0
        self.is_ready = False
        self._url = url
        self._headers = headers
        self._options = options
        self._backpressure = backpressure
        self._on_text = on_text
        self._on_lost = on_lost
        self._socket: ClientConnection | None = None
        self._failure: ClientError | None = None
        self._last_problem = ""
        self._opened_at = 0.0
        self._is_restart = False
        self._changed = asyncio.Event()
        self._sent_at: deque[float] = deque(maxlen=options.frames_per_second)
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to connect."""
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._stopped)

    async def close(self) -> None:
        """Close for good."""
        self._fail(ClientClosed())
        if self._socket is not None:
            await self._socket.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def failure(self) -> ClientError | None:
        """Why there will be no other connection, once that is so."""
        return self._failure

    def introduced(self) -> None:
        """The handshake is complete: the connection may be used."""
        self.is_ready = True
        self._changed.set()

    async def ready(self) -> int:
        """Wait for a usable connection; returns its number. Errors: `Refused`, `ClientClosed`."""
        while not self.is_ready:
            if self._failure is not None:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()
        return self.number

    async def first_ready(self) -> None:
        """Wait for the first connection. Errors: `ConnectionFailed` on timeout, and the errors of `ready`."""
        try:
            async with asyncio.timeout(self._options.ready_seconds):
                await self.ready()
        except TimeoutError as error:
            seconds = self._options.ready_seconds
            problem = self._last_problem or "the server does not say who it is"
            raise ConnectionFailed(f"No connection within {seconds:g} s: {problem}") from error

    async def send(self, text: str, number: int) -> None:
        """Send over this connection and no other. Errors: `Disconnected`, `Refused`, `ClientClosed`."""
        await self._pace()
        if self._failure is not None:
            raise self._failure
        if self._socket is None or self.number != number:
            raise Disconnected
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise Disconnected from error

    async def _pace(self) -> None:
        """Give each frame its moment: no more than so many of them lie within a second."""
        now = time.monotonic()
        is_many = len(self._sent_at) == self._sent_at.maxlen
        moment = max(now, self._sent_at[0] + 1) if is_many else now
        self._sent_at.append(moment)
        if moment > now:
            await asyncio.sleep(moment - now)

    async def _run(self) -> None:
        attempt = 0
        while self._failure is None:
            try:
                async with connect(
                    self._url,
                    additional_headers=self._headers,
                    open_timeout=self._options.open_seconds,
                    close_timeout=2,
                    ping_interval=None,  # a heartbeat of ours: a paused reader receives no pongs
                    max_size=self._options.received_max_bytes,
                    compression=None,
                    proxy=None,
                ) as socket:
                    await self._serve(socket)
            except InvalidStatus as error:
                self._refused_upgrade(error.response.status_code)
            except (OSError, WebSocketException, TimeoutError) as error:
                self._last_problem = str(error) or type(error).__name__
            lasted = time.monotonic() - self._opened_at
            attempt = 0 if self.is_ready and (lasted > STEADY_SECONDS or self._is_restart) else attempt + 1
            self.is_ready = self._is_restart = False
            if self._failure is None:
                await asyncio.sleep(self._options.delay(attempt))

    async def _serve(self, socket: ClientConnection) -> None:
        self.number += 1
        self._opened_at = time.monotonic()
        self._socket = socket
        heartbeat = asyncio.create_task(self._beat(socket))
        try:
            while True:
                await self._backpressure.passed()
                text = await socket.recv()
                if isinstance(text, str):
                    await self._on_text(text)
        except (ConnectionClosed, ClientError):
            pass  # an answer that can no longer be sent included
        finally:
            heartbeat.cancel()
            self._socket = None
            self._ended(socket.close_code, socket.close_reason or "")

    def _ended(self, code: int | None, reason: str) -> None:
        logger.info("connection ended", extra={"action": "client_connection_ended", "close_code": code})
        if code is not None and is_refusal(code):
            self._fail(refusal_of(code, reason))
        self._is_restart = code in _RESTARTS
        self._last_problem = reason or f"closed with {code}"
        self._on_lost(code)

    def _refused_upgrade(self, status: int) -> None:
        self._last_problem = f"HTTP status {status}"
        if 400 <= status < 500 and status not in _TRIED_AGAIN:
            self._fail(refusal_of(status, f"The server refused the connection with HTTP status {status}."))
            self._on_lost(None)

    async def _beat(self, socket: ClientConnection) -> None:
        """Ping the server, and close a connection that does not answer; skipped while this client is not reading."""
        while True:
            await asyncio.sleep(self._options.heartbeat_seconds)
            with suppress(ConnectionClosed):
                pong = await socket.ping()
                done, _ = await asyncio.wait({asyncio.ensure_future(pong)}, timeout=self._options.heartbeat_seconds)
                if not done and not self._backpressure.is_closed:
                    socket.transport.abort()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """An error of ours must not leave everybody waiting."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            failure = ClientError(f"The client has failed: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
            self._on_lost(None)

    def _fail(self, error: ClientError) -> None:
        self._failure = self._failure or error
        self._changed.set()
