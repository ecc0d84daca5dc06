"""A plain socket client for acceptance tests: it knows JSON and the frames' names, and nothing of the product."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

RESPONSE = "cf_agent_use_chat_response"


class Tab:
    """One connection. Keeps every frame in the order of arrival."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.frames: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self.close_code: int | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, headers: dict[str, str] | None = None) -> AsyncIterator[Self]:
        """Connect; the socket closes at the end."""
        async with connect(url, additional_headers=headers or {}, max_size=None) as socket:
            tab = cls(socket)
            try:
                yield tab
            finally:
                tab._reader.cancel()

    async def _read(self) -> None:
        with suppress(ConnectionClosed):
            async for text in self._socket:
                self.frames.append(json.loads(text))
                self._arrived.set()
        self.close_code = self._socket.close_code
        self._arrived.set()

    async def send(self, **frame: Any) -> None:
        """Send one frame."""
        await self._socket.send(json.dumps(frame))

    async def send_text(self, text: str | bytes) -> None:
        """Send anything."""
        await self._socket.send(text)

    async def send_raw_text(self, data: bytes) -> None:
        """Send a text frame whose bytes are as given, valid UTF-8 or not."""
        await self._socket.send(data, text=True)

    async def chat(self, text: str, *, request_id: str = "", messages: list[Any] | None = None, **body: Any) -> str:
        """Send a chat request as the published client does: the whole visible list, the new message last."""
        request_id = request_id or secrets.token_hex(4)
        message = {"id": secrets.token_hex(8), "role": "user", "parts": [{"type": "text", "text": text}]}
        await self.request(request_id, [*(messages or []), message], **body)
        return request_id

    async def request(self, request_id: str, messages: list[Any], **body: Any) -> None:
        """Send a chat request with a given list."""
        payload = {"messages": messages, "trigger": "submit-message", **body}
        await self.send(
            type="cf_agent_use_chat_request", id=request_id, init={"method": "POST", "body": json.dumps(payload)}
        )

    async def wait(self, condition: Callable[[dict[str, Any]], bool], *, seconds: float = 20, start: int = 0) -> int:
        """Wait for a frame; returns its index. Fails with what came instead."""
        async with asyncio.timeout(seconds):
            position = start
            while True:
                for index in range(position, len(self.frames)):
                    if condition(self.frames[index]):
                        return index
                position = len(self.frames)
                if self.close_code is not None:
                    raise AssertionError(f"closed with {self.close_code}; frames: {self.kinds()}")
                self._arrived.clear()
                await self._arrived.wait()

    async def done(self, request_id: str, *, seconds: float = 30) -> dict[str, Any]:
        """Wait for the terminal frame of a request."""
        index = await self.wait(lambda f: f.get("id") == request_id and f.get("done") is True, seconds=seconds)
        return self.frames[index]

    async def closed(self, *, seconds: float = 10) -> int:
        """Wait until the server closed the socket; returns the code."""
        await asyncio.wait_for(asyncio.shield(self._reader), seconds)
        assert self.close_code is not None
        return self.close_code

    def kinds(self) -> list[str]:
        """Types of all frames."""
        return [frame["type"] for frame in self.frames]

    def chunks(self, request_id: str) -> list[dict[str, Any]]:
        """Chunks of a request, as they came."""
        return [
            json.loads(f["body"])
            for f in self.frames
            if f["type"] == RESPONSE and f["id"] == request_id and f["body"] and not f["done"] and not f.get("error")
        ]

    def offsets(self, request_id: str) -> list[int]:
        """`seq` of the chunks of a request, as they came."""
        return [f["seq"] for f in self.frames if f["type"] == RESPONSE and f["id"] == request_id and "seq" in f]

    def text(self, request_id: str) -> str:
        """Text of a request, each chunk once by its offset."""
        by_offset = {
            f["seq"]: json.loads(f["body"])
            for f in self.frames
            if f["type"] == RESPONSE and f["id"] == request_id and "seq" in f
        }
        return "".join(c["delta"] for _, c in sorted(by_offset.items()) if c["type"] == "text-delta")

    def transcript(self) -> list[dict[str, Any]]:
        """The last transcript."""
        return next(f["messages"] for f in reversed(self.frames) if f["type"] == "cf_agent_chat_messages")
