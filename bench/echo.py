"""`python -m bench.echo`: a bare WebSocket server, so that the driver can be measured without the product.

It sends each frame back at once; `{"stream": COUNT, "rate": R}` is answered with so many frames at that rate, each with
the moment it was sent. Its first line on standard output is its port.
"""

import asyncio
import sys
import time
from typing import cast

import msgspec
import uvloop

from bench.sockets import CLOSE, TEXT, FrameReader, accept_upgrade, encode_frame

PAD = "x" * 110  # about as long as a frame with a word in it


class Echo(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self._reader: FrameReader | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection came."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by descent

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """And went."""
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Upgrade first, then frames."""
        assert self._transport is not None
        if self._reader is None:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            self._transport.write(accept_upgrade(bytes(self._head[:end])))
            self._reader = FrameReader()
            data = bytes(self._head[end + 4 :])
        for opcode, payload in self._reader.feed(data):
            if opcode == CLOSE:
                self._transport.close()
            elif opcode == TEXT:
                self._answer(payload)

    def _answer(self, payload: bytes) -> None:
        value = msgspec.json.decode(payload)
        if isinstance(value, dict) and "stream" in value:
            self._stream(int(value["stream"]), 1 / float(value["rate"]), asyncio.get_running_loop().time())
        else:
            self._write(payload)

    def _stream(self, left: int, pause: float, due: float) -> None:
        loop = asyncio.get_running_loop()
        self._write(msgspec.json.encode({"at": time.time(), "left": left, "done": left <= 1, "pad": PAD}))
        if left > 1:
            self._timer = loop.call_at(due + pause, self._stream, left - 1, pause, due + pause)

    def _write(self, payload: bytes) -> None:
        assert self._transport is not None
        self._transport.write(encode_frame(payload))


async def serve() -> None:
    """Listen until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
