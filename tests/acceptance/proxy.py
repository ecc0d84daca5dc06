"""A TCP proxy that can cut: what "offline" means to a browser or client whose machine lost its network.

It runs in a thread of its own with its own loop. Connections go to the targets in turn, so that a test also shows that
no server needs to see a client twice.
"""

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
BLOCK_BYTES = 65_536


class CuttingProxy:
    """Forwards to the targets until it is asked to cut. All methods may be called from any thread."""

    def __init__(self, targets: Sequence[int], *, port: int = 0) -> None:
        self._targets = itertools.cycle(targets)
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._is_online = True
        self._deaf: set[asyncio.StreamWriter] = set()
        self.accepted = 0
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="cutting-proxy", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address for HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> int:
        """Reset every open connection; new ones are served. Returns how many were open."""
        return self._call(self._cut)

    def go_offline(self) -> None:
        """Reset every open connection and every new one."""

        def act() -> int:
            self._is_online = False
            return self._cut()

        self._call(act)

    def go_online(self) -> None:
        """Serve again."""

        def act() -> None:
            self._is_online = True

        self._call(act)

    def fall_silent(self) -> int:
        """Go on taking bytes of every open connection, and pass none on; new ones are served. Returns how many."""

        def act() -> int:
            self._deaf.update(itertools.chain.from_iterable(self._pairs))
            return len(self._pairs)

        return self._call(act)

    def close(self) -> None:
        """End the proxy and its thread."""
        self._call(self._cut)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._listener.close()

    def _call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout=10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, sock=self._listener))
        self._loop.run_forever()
        server.close()  # who came in just now is ended as well
        self._loop.run_until_complete(_end_all())
        self._loop.close()

    def _cut(self) -> int:
        count = len(self._pairs)
        for pair in list(self._pairs):
            for writer in pair:
                _reset(writer)
        self.cuts += count
        self._pairs.clear()
        return count

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if not self._is_online:
            _reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", next(self._targets))
        except OSError:
            _reset(writer)
            return
        pair = (writer, far_writer)
        self._pairs.add(pair)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the proxy closes
                await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            self._pairs.discard(pair)
            self._deaf -= {*pair}
            for end in pair:
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            try:
                while block := await reader.read(BLOCK_BYTES):
                    if writer not in self._deaf:
                        writer.write(block)
                        await writer.drain()
                if writer.can_write_eof() and writer not in self._deaf:
                    writer.write_eof()
            except OSError:  # one end was reset: so is the other, which would wait for ever otherwise
                _reset(writer)


async def _end_all() -> None:
    rounds = 3  # what was accepted gets its task a round later, and closed transports close their sockets then
    while rounds:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
        rounds = 3 if tasks else rounds - 1


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: Any = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # RST, not FIN
    writer.transport.abort()
