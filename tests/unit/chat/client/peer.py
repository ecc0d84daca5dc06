"""A scripted peer: a real socket server that says what a test tells it to, well behaved or not."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from chat.client import ChatClient, Options
from chat.core.wire import extension_frames, frames

JSONObject = dict[str, Any]
QUICK = Options(first_delay=0.01, longest_delay=0.05, ready_seconds=5)


class Peer:
    """Each connection runs `script(connection)`; what clients send comes by `expect`."""

    def __init__(self, script: Callable[["Connection"], Awaitable[None]]) -> None:
        self._script = script
        self.connections: list[Connection] = []
        self.failures: list[BaseException] = []
        self.stored: list[JSONObject] = []
        self.port = 0

    def answer_http(self, socket: ServerConnection, request: Request) -> Response | None:
        """Give the stored messages; nothing else is served over HTTP."""
        if "Upgrade" in request.headers:
            return None
        if request.path.endswith("/get-messages"):
            return socket.respond(200, json.dumps(self.stored))
        return socket.respond(404, "no such page")

    async def serve(self, socket: ServerConnection) -> None:
        connection = Connection(socket, len(self.connections))
        self.connections.append(connection)
        try:
            await self._script(connection)
            await socket.wait_closed()
        except (ConnectionClosed, asyncio.CancelledError):
            pass
        except BaseException as error:
            self.failures.append(error)
            raise


class Connection:
    """One connection of the peer. `number` counts from 0."""

    def __init__(self, socket: ServerConnection, number: int) -> None:
        self.socket = socket
        self.number = number
        self.received: list[JSONObject] = []

    async def introduce(self, *first: str, state: Any = None) -> None:
        """The frames of a connection."""
        for text in first or (frames.messages([], connect=True),):
            await self.socket.send(text)
        await self.socket.send(frames.identity("conversation", "assistant", state_follows=state is not None))
        if state is not None:
            await self.socket.send(frames.state(state))
        await self.socket.send(extension_frames.mcp_servers())

    async def send(self, *texts: str) -> None:
        for text in texts:
            await self.socket.send(text)

    async def expect(self, kind: str) -> JSONObject:
        """The next frame, which must be of this type."""
        frame: JSONObject = json.loads(await self.socket.recv())
        self.received.append(frame)
        assert frame["type"] == kind, frame
        return frame

    async def handled(self) -> None:
        """Answer the call that asks whether everything was handled."""
        frame = await self.expect("rpc")
        assert frame["method"] == ""
        await self.socket.send(frames.rpc_error(frame["id"], "Method  does not exist"))

    async def request(self) -> JSONObject:
        """Take a chat request: its id and its body."""
        frame = await self.expect("cf_agent_use_chat_request")
        return {"id": frame["id"], **json.loads(frame["init"]["body"])}

    def cut(self) -> None:
        """End the connection without a word."""
        self.socket.transport.abort()


def chunk(request_id: str, seq: int, kind: str, *, replay: bool = False, **fields: Any) -> str:
    return frames.chunk_frame(request_id, json.dumps({"type": kind, **fields}), seq, replay=replay)


def answer(request_id: str, *words: str, replay: bool = False, message_id: str = "a1") -> list[str]:
    """The chunks of an answer, from `start` to `finish`."""
    chunks: list[tuple[str, JSONObject]] = [("start", {"messageId": message_id}), ("text-start", {"id": "t"})]
    chunks += [("text-delta", {"id": "t", "delta": word}) for word in words]
    chunks += [("text-end", {"id": "t"}), ("finish", {"finishReason": "stop"})]
    return [chunk(request_id, seq, kind, replay=replay, **fields) for seq, (kind, fields) in enumerate(chunks)]


@contextlib.asynccontextmanager
async def peer(script: Callable[[Connection], Awaitable[None]]) -> AsyncIterator[Peer]:
    scripted = Peer(script)
    async with serve(scripted.serve, "127.0.0.1", 0, close_timeout=0.2, process_request=scripted.answer_http) as server:
        scripted.port = next(iter(server.sockets)).getsockname()[1]
        yield scripted
    assert scripted.failures == []


@contextlib.asynccontextmanager
async def talking(
    script: Callable[[Connection], Awaitable[None]], *, options: Options = QUICK, **more: Any
) -> AsyncIterator[tuple[ChatClient, Peer]]:
    """A client in conversation with a peer."""
    async with (
        asyncio.timeout(20),
        peer(script) as scripted,
        ChatClient(
            f"http://127.0.0.1:{scripted.port}", agent="assistant", name="conversation", options=options, **more
        ) as chat,
    ):
        yield chat, scripted
