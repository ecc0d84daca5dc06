"""The DevTools protocol as messages: commands with their answers, and events, over a pipe or a socket.

One connection has many sessions (one for each attached target), which messages name in `sessionId`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol, TypeAlias

import aiohttp

from thinkproject.kernel.jsonvalue import JSONObject, dump, load
from tools_app.browser.errors import BrowserFailed, BrowserGone

logger = logging.getLogger(__name__)

COMMAND_SECONDS: Final = 10.0
MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
MESSAGES_AT_ONCE: Final = 50
FLOOD_MESSAGES: Final = 50_000
FLOOD_BYTES: Final = 128 * 1024 * 1024
CLOSE_SECONDS: Final = 5.0
GONE: Final = "The browser has ended. The next call starts a new one."

Listener: TypeAlias = Callable[[str, JSONObject, str], None]
"""Takes an event: its method, its parameters, and its session (empty: of the browser)."""


class Transport(Protocol):
    """Carries whole messages."""

    def write(self, message: bytes) -> None:
        """Send one."""

    def messages(self) -> AsyncIterator[bytes]:
        """The messages that arrive, until the other end is gone."""

    async def close(self) -> None:
        """End it. Safe to call again."""


class PipeTransport:
    """The pipes of a browser that was started: messages end with a zero byte."""

    LIMIT: Final = MAX_MESSAGE_BYTES

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._stdout = process.stdout

    def write(self, message: bytes) -> None:
        """Send one; nothing where the browser is gone."""
        if not self._stdin.is_closing():
            self._stdin.write(message + b"\0")

    async def messages(self) -> AsyncIterator[bytes]:
        """The messages that arrive. One that is too large ends it."""
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            while True:
                yield (await self._stdout.readuntil(b"\0"))[:-1]

    async def close(self) -> None:
        """End it, and drop what is still said, so that the pipes are gone when the browser is."""
        self._stdin.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while await self._stdout.read(1 << 16):
                    pass


class SocketTransport:
    """A web socket of a browser elsewhere."""

    def __init__(self, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._session = session
        self._socket = socket
        self._sending: set[asyncio.Task[None]] = set()

    def write(self, message: bytes) -> None:
        """Send one."""
        task = asyncio.create_task(self._send(message.decode()))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, text: str) -> None:
        with contextlib.suppress(OSError, RuntimeError, aiohttp.ClientError):  # the reader finds out that it is gone
            await self._socket.send_str(text)

    async def messages(self) -> AsyncIterator[bytes]:
        """The messages that arrive."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            yield message.data.encode()

    async def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError, aiohttp.ClientError):
            await self._socket.close()
        await self._session.close()


class BrowserConnection:
    """Sends commands and hands events to listeners. Reads until the browser is gone."""

    def __init__(self, transport: Transport) -> None:
        self.listeners: list[Listener] = []
        self.on_end: list[Callable[[], None]] = []
        self.end_reason = GONE
        self._transport = transport
        self._waiting: dict[int, asyncio.Future[JSONObject]] = {}
        self._last = 0
        self._messages = 0
        self._bytes = 0
        self._has_ended = False
        self._reading = asyncio.create_task(self._read())

    @property
    def is_closed(self) -> bool:
        """Whether nothing arrives any more."""
        return self._has_ended or self._reading.done()

    async def send(
        self, method: str, params: JSONObject | None = None, session: str = "", *, seconds: float = COMMAND_SECONDS
    ) -> JSONObject:
        """Send a command and wait for its result.

        Errors: `BrowserGone`; `BrowserFailed` for what the browser refuses, and without an answer in time.
        """
        if self.is_closed:
            raise BrowserGone(self.end_reason)
        self._last += 1
        number = self._last
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        answer: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._transport.write(dump(message).encode())
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise BrowserFailed(f"{method} had no answer within {seconds:g} s.") from None
        finally:
            self._waiting.pop(number, None)

    def allow_more(self) -> None:
        """Begin to count anew what arrives. Too much of it between two calls of this ends the connection."""
        self._messages = self._bytes = 0

    async def close(self) -> None:
        """End it; commands that wait fail. Safe to call again."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._transport.close()

    async def _read(self) -> None:
        try:
            async for message in self._transport.messages():
                self._messages += 1
                self._bytes += len(message)
                if self._messages > FLOOD_MESSAGES or self._bytes > FLOOD_BYTES:
                    self.end_reason = "The pages of the browser said too much, and it was ended."
                    break
                self._take(message)
                if self._messages % MESSAGES_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a flood leaves the loop to others
        finally:
            self._has_ended = True
            for tell in list(self.on_end):
                tell()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(BrowserGone(self.end_reason))

    def _take(self, data: bytes) -> None:
        try:
            message = load(data)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        number = message.get("id")
        if isinstance(number, int):
            self._answer(number, message)
            return
        method, params = message.get("method"), message.get("params", {})
        if isinstance(method, str) and isinstance(params, dict):
            for listener in list(self.listeners):
                listener(method, params, str(message.get("sessionId", "")))

    def _answer(self, number: int, message: JSONObject) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            answer.set_exception(BrowserFailed(str(error.get("message", "The browser refused it."))[:2000]))
        else:
            result = message.get("result")
            answer.set_result(result if isinstance(result, dict) else {})
