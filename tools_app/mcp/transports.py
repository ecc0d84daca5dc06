"""The ways to a server: over the network within the rules of fetching, or a program that ends with its worker.

Both tell why they ended, since the client of the protocol says only that they did.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

import anyio
import httpx2
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import JSONRPCResponse

from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.last_words import ending, slow_start, without_secrets
from tools_app.core.mcp.results import RESULT_BYTES
from tools_app.core.mcp.servers import McpServerSpec, McpTransport
from tools_app.fetching.transport import CheckedTransport
from tools_app.mcp.conf import CONNECT_SECONDS, mcp_settings
from tools_app.mcp.lenient_http import LenientTransport
from tools_app.mcp.odd_items import whole_introduction, with_items_set_aside

STREAM_SECONDS: Final = 300.0
STDERR_BYTES: Final = 4_000
"""Kept of the beginning of a standard error, and of its end."""
STDERR_SECONDS: Final = 0.5
END_SECONDS: Final = 3.0
SESSION_HEADER: Final = "mcp-session-id"
SESSION_BODY_BYTES: Final = 10_000
SESSION_WORDS: Final = re.compile(rb"session|initiali[sz]ed", re.IGNORECASE)
METHOD_MISSING: Final = re.compile(rb'"code"\s*:\s*-32601')
"""Of JSON-RPC: the server knows the session, and not what was asked. It may come with 404."""


class Way:
    """The way to one server: a transport for the client of the protocol, and what it has noted."""

    def __init__(self, spec: McpServerSpec, auth: httpx2.Auth | None = None) -> None:
        self.ended = asyncio.Event()
        self.has_lost_session = False  # the server no longer knows the session that we have at it
        self.version = ""  # of the protocol, once both sides have agreed on it
        self._spec = spec
        self._auth = auth
        self._checked: CheckedTransport | None = None
        self._first_lines = b""
        self._last_lines = b""

    @property
    def reason(self) -> Phrase | str:
        """Why it ended, as far as is known: words of ours, with those that a program printed."""
        return self._refusal or ending(self._printed, self._spec.env.keys()) or ""

    @property
    def reason_of_silence(self) -> Phrase | str:
        """Why it has not answered yet, as far as is known."""
        return self._refusal or slow_start(self._printed, self.seconds)

    @property
    def seconds(self) -> float:
        """Seconds that it may take to connect."""
        is_program = self._spec.transport is McpTransport.STDIO
        return mcp_settings.start_seconds if is_program else CONNECT_SECONDS

    @property
    def _refusal(self) -> str:
        return "" if self._checked is None else self._checked.last_refusal

    @property
    def _printed(self) -> str:
        text = (self._first_lines + self._last_lines).decode(errors="replace")
        return without_secrets(text, (*self._spec.env.values(), *self._spec.headers.values()))

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[Any, None]:
        """The two streams that the client of the protocol reads and writes."""
        is_program = self._spec.transport is McpTransport.STDIO
        async with self._program() if is_program else self._network() as (reading, writing):
            yield _Watched(reading, self), writing

    @contextlib.asynccontextmanager
    async def _network(self) -> AsyncGenerator[Any, None]:
        self._checked = CheckedTransport(private=mcp_settings.private, max_bytes=RESULT_BYTES)
        client = httpx2.AsyncClient(
            transport=LenientTransport(self._checked),
            headers=dict(self._spec.headers),
            auth=self._auth,
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=STREAM_SECONDS),
            trust_env=False,
            event_hooks={"response": [self._look_for_session]},
        )
        async with (
            client,
            streamable_http_client(self._spec.url, http_client=client, max_sse_event_size=RESULT_BYTES) as streams,
        ):
            yield streams

    async def _look_for_session(self, response: httpx2.Response) -> None:
        """Note a refusal of our session: 404, as the protocol has it, or 400 in the words of common servers."""
        if SESSION_HEADER not in response.request.headers or response.request.method == "DELETE":
            return
        if response.status_code not in {400, 404}:
            return
        body = (await response.aread())[:SESSION_BODY_BYTES]
        is_unknown_method = METHOD_MISSING.search(body) is not None
        if not is_unknown_method and (response.status_code == 404 or SESSION_WORDS.search(body)):
            self.has_lost_session = True

    @contextlib.asynccontextmanager
    async def _program(self) -> AsyncGenerator[Any, None]:
        program, *arguments = _ending_with_us(self._spec.command)
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(self._spec.env))
        reading, writing = os.pipe()
        with open(writing, "w") as errors:  # noqa: ASYNC230 - a pipe, which does not block
            listening = asyncio.create_task(self._listen(reading))
            try:
                async with stdio_client(parameters, errlog=errors) as streams:
                    errors.close()  # the program has its own
                    yield streams
            finally:
                await asyncio.wait({listening}, timeout=STDERR_SECONDS)  # its last words may be on their way
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening

    async def _listen(self, reading: int) -> None:
        """Keep the beginning and the end of what the program writes to its standard error, and nothing else of it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=STDERR_BYTES)
        pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb"))
        try:
            while data := await reader.read(STDERR_BYTES):
                room = STDERR_BYTES - len(self._first_lines)
                self._first_lines += data[:room]
                self._last_lines = (self._last_lines + data[room:])[-STDERR_BYTES:]
        finally:
            pipe.close()


class _Watched:
    """A stream for reading that says when there is nothing more to read, and sets aside items that are wrong."""

    def __init__(self, stream: Any, way: Way) -> None:
        self._stream = stream
        self._way = way

    @property
    def last_context(self) -> Any:
        """The context of the sender, where the stream has one."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Receive an item. Errors: those of the stream, at whose end the event is set."""
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._way.ended.set()
            raise
        message = getattr(item, "message", None)  # else an error
        if isinstance(message, JSONRPCResponse):
            message.result = with_items_set_aside(whole_introduction(message.result), self._way.version)
        return item

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "_Watched":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _ending_with_us(command: Sequence[str]) -> list[str]:
    """The command, ended by the kernel when the thread that started it is gone, however that happened."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:  # a server of the protocol ends when its standard input does
        return list(command)
    return [setpriv, "--pdeathsig", signal.Signals.SIGKILL.name.removeprefix("SIG"), "--no-new-privs", *command]
