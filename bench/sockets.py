"""WebSockets with as little between the network and the clock as can be: a client and the frames of both sides.

The driver shares the machine with what it measures, so it decodes nothing while it listens: it keeps the bytes of each
frame and the moment it came, and looks for a few bytes in it while a test waits.
"""

import asyncio
import base64
import hashlib
import os
import time
from typing import Self, cast
from urllib.parse import urlsplit

import msgspec

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def encode_frame(payload: bytes, *, opcode: int = TEXT, mask: bool = False) -> bytes:
    """Encode one whole frame; what clients send is masked."""
    size = len(payload)
    head = bytes([0x80 | opcode])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65_536:
        head += bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([bit | 127]) + size.to_bytes(8, "big")
    if not mask:
        return head + payload
    key = os.urandom(4)
    return head + key + _masked(payload, key)


def _masked(payload: bytes, key: bytes) -> bytes:
    stream = (key * (len(payload) // 4 + 1))[: len(payload)]
    mixed = int.from_bytes(payload, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(payload), "big")


class FrameReader:
    """Frames out of bytes cut anywhere."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._partial = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take bytes and return `(opcode, payload)` of every complete frame; fragments are put together."""
        self.buffer += data
        found, at, size = [], 0, len(self.buffer)
        while size - at >= 2:
            first, second = self.buffer[at], self.buffer[at + 1]
            length, head = second & 0x7F, 2
            if length >= 126:
                wide = 2 if length == 126 else 8
                if size - at < 2 + wide:
                    break
                length, head = int.from_bytes(self.buffer[at + 2 : at + 2 + wide], "big"), 2 + wide
            key = b""
            if second & 0x80:
                if size - at < head + 4:
                    break
                key = bytes(self.buffer[at + head : at + head + 4])
                head += 4
            if size - at < head + length:
                break
            payload = bytes(self.buffer[at + head : at + head + length])
            found += self._whole(first, _masked(payload, key) if key else payload)
            at += head + length
        del self.buffer[:at]
        return found

    def _whole(self, first: int, payload: bytes) -> list[tuple[int, bytes]]:
        opcode, is_last = first & 0x0F, first & 0x80
        if opcode >= CLOSE:
            return [(opcode, payload)]
        self._partial += payload
        if not is_last:
            return []
        whole = bytes(self._partial)
        self._partial.clear()
        return [(TEXT, whole)]


class Socket(asyncio.Protocol):
    """A client. `frames`: bytes of each text frame; `times`: when it came, on the clock the provider stamps with."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._head = bytearray()
        self._is_open = False
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._wanted: list[tuple[tuple[bytes, ...], asyncio.Future[int]]] = []
        self.frames: list[bytes] = []
        self.times: list[float] = []
        self.closed = False

    @classmethod
    async def connect(cls, url: str) -> Self:
        """Connect and upgrade. Errors: `ConnectionError` when the upgrade is refused."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        key = base64.b64encode(os.urandom(16)).decode()
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()
        assert parts.hostname is not None
        assert parts.port is not None
        loop = asyncio.get_running_loop()
        _, socket = await loop.create_connection(lambda: cls(request), parts.hostname, parts.port)
        async with asyncio.timeout(60):
            await socket._opened
        return socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the upgrade at once."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by descent
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Note the time before anything else."""
        now = time.time()
        if not self._is_open:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            if b" 101 " not in self._head[:end].split(b"\r\n", 1)[0]:
                self._opened.set_exception(ConnectionError(bytes(self._head[:end]).decode("latin-1")))
                return
            self._is_open = True
            self._opened.set_result(None)
            data = bytes(self._head[end + 4 :])
        for opcode, payload in self._reader.feed(data):
            if opcode == TEXT:
                self.frames.append(payload)
                self.times.append(now)
                if self._wanted:
                    self._tell(payload)
            elif opcode == PING and self._transport is not None:
                self._transport.write(encode_frame(payload, opcode=PONG, mask=True))

    def connection_lost(self, exc: Exception | None) -> None:
        """The server closed."""
        self.closed = True
        error = exc or ConnectionError("the socket was closed")
        if not self._opened.done():
            self._opened.set_exception(error)
        for _, future in self._wanted:
            if not future.done():
                future.set_exception(error)
        self._wanted.clear()

    def send(self, value: object) -> float:
        """Send one frame of JSON; returns when."""
        assert self._transport is not None
        payload = msgspec.json.encode(value)
        data = encode_frame(payload, mask=True)
        now = time.time()
        self._transport.write(data)
        return now

    async def until(self, *parts: bytes, start: int = 0, seconds: float = 60.0) -> int:
        """Wait for a frame that holds all of these bytes; returns its index. `start`: the first to look at."""
        for index in range(start, len(self.frames)):
            if all(part in self.frames[index] for part in parts):
                return index
        if self.closed:
            raise ConnectionError("the socket was closed")
        future: asyncio.Future[int] = self._loop.create_future()
        self._wanted.append((parts, future))
        async with asyncio.timeout(seconds):
            return await future

    def close(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _tell(self, payload: bytes) -> None:
        for entry in list(self._wanted):
            parts, future = entry
            if future.done():
                self._wanted.remove(entry)
            elif all(part in payload for part in parts):
                self._wanted.remove(entry)
                future.set_result(len(self.frames) - 1)


def accept_upgrade(head: bytes) -> bytes:
    """Answer a client's request for an upgrade."""
    line = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
    key = line.split(b":", 1)[1].strip()
    accept = base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )
