"""A TCP proxy that can be cut: what a lost network looks like. A browser's offline switch leaves open sockets alive."""

import asyncio
import threading
from contextlib import suppress


class Proxy:
    """Forwards a port of its own to another one, in a thread. `cut` ends every connection and refuses new ones."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    def cut(self) -> None:
        """Lose the network."""
        self.is_cut = True
        self._loop.call_soon_threadsafe(self._drop)

    def mend(self) -> None:
        """Have it back."""
        self.is_cut = False

    def close(self) -> None:
        """End the thread."""
        self.cut()
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(5)

    def _drop(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        with suppress(asyncio.CancelledError):  # the end of the proxy; streams report a cancelled handler as an error
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.close()
        self._writers.discard(writer)
