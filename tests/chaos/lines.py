"""A plain socket client that comes back: it knows JSON and the frames' names, and nothing of the product.

It keeps every frame of every connection as it came and drops nothing: what is doubled or missing is for the oracle to
find. What it asked for and has not received the end of, it asks again under the same id when it is back.
"""

import asyncio
import contextlib
import json
import random
import secrets
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, WebSocketException

JSONObject = dict[str, Any]
OPEN_SECONDS = 4.0  # as the published client
LONGEST_PAUSE_SECONDS = 1.0


def new_connection() -> JSONObject:
    """A connection as the oracle reads it. `opened`: when the server had said who it is."""
    return {"opened": None, "closed": None, "frames": []}


def note(frame: JSONObject) -> JSONObject:
    """A response frame as the oracle reads it: `chunk`, `done`, `error` or `complete` (of a replay)."""
    noted = {"request": frame["id"], "replay": bool(frame.get("replay"))}
    if frame["done"]:
        outcome = "error: " + frame["body"] if frame.get("error") else frame.get("outcome") or "ended"
        return {**noted, "kind": "done", "outcome": outcome}
    if frame.get("error"):
        return {**noted, "kind": "error", "text": frame["body"]}
    if frame.get("replayComplete"):
        return {**noted, "kind": "complete"}
    return {**noted, "kind": "chunk", "seq": frame["seq"], "body": frame["body"], "at": time.time()}


class Line:
    """One client in one conversation, over any number of connections."""

    def __init__(self, client: str, room: str, url: str, dice: random.Random) -> None:
        self.client = client
        self.room = room
        self.connections: list[JSONObject] = []
        self.transcript: list[JSONObject] = []
        self.ended: dict[str, str] = {}
        self.seen: dict[str, int] = {}  # chunks by request
        self.kinds: set[str] = set()  # types of frames that came
        self.is_open = False
        self._url = url
        self._dice = dice
        self._asked: dict[str, str] = {}  # frames by request, until the end is received
        self._unwanted: set[str] = set()
        self._socket: ClientConnection | None = None
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._live())

    @property
    def sent(self) -> list[str]:
        """Requests of this client."""
        return list(self._asked)

    async def close(self) -> None:
        """Leave for good."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def ask(self, messages: list[JSONObject], *, trigger: str = "submit-message") -> str:
        """Ask for a turn; returns the request id. Sent now, and again after each reconnection until it ended."""
        request = secrets.token_hex(4)
        body = json.dumps({"messages": messages, "trigger": trigger})
        frame = {"type": "cf_agent_use_chat_request", "id": request, "init": {"method": "POST", "body": body}}
        self._asked[request] = json.dumps(frame)
        await self._send(self._asked[request])
        return request

    async def stop(self, request: str) -> None:
        """Stop a turn, anybody's."""
        self._unwanted.add(request)
        await self._send(_cancel(request))

    async def wait(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        """Wait for something that frames make true. False when it did not become so."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def arrivals(self, request: str) -> list[tuple[float, int]]:
        """When each chunk was first there: moment and offset, in order of offset."""
        found: dict[int, float] = {}
        for frame in (frame for line in self.connections for frame in line["frames"]):
            if _is_chunk(frame, request):
                found.setdefault(frame["seq"], frame["at"])
        return sorted((at, seq) for seq, at in found.items())

    def text(self, request: str) -> str:
        """The answer's text, each chunk once by its offset."""
        bodies = {f["seq"]: f["body"] for line in self.connections for f in line["frames"] if _is_chunk(f, request)}
        chunks = [json.loads(body) for _, body in sorted(bodies.items())]
        return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")

    def dump(self) -> JSONObject:
        """What this client got, connection by connection."""
        return {
            "client": self.client,
            "room": self.room,
            "connections": self.connections,
            "sent": self.sent,
            "ended": list(self.ended),
        }

    async def ids(self) -> list[str]:
        """Ids of the messages in the last transcript."""
        return [message["id"] for message in self.transcript]

    async def view(self, leaf: int | None) -> JSONObject:
        """What this client holds now, while the path to this leaf is shown."""
        held = {"place": f"client {self.client}", "kind": "transcript", "room": self.room}
        return {**held, "leaf": leaf, "messages": self.transcript}

    async def _send(self, text: str) -> None:
        if self._socket is not None:
            with contextlib.suppress(WebSocketException):  # it is sent again when the line is back
                await self._socket.send(text)

    async def _live(self) -> None:
        pause = 0.05
        while True:
            try:
                async with connect(self._url, max_size=None, open_timeout=OPEN_SECONDS, ping_interval=None) as socket:
                    pause = 0.05
                    await self._serve(socket)
            except (OSError, WebSocketException, InvalidHandshake, TimeoutError):
                pass
            finally:
                self._socket = None
                self.is_open = False
                if self.connections and self.connections[-1]["closed"] is None:
                    self.connections[-1]["closed"] = time.time()
            await asyncio.sleep(pause * self._dice.uniform(0.5, 1.5))  # between two tries, as clients do
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)

    async def _serve(self, socket: ClientConnection) -> None:
        connection = new_connection()
        self.connections.append(connection)
        acknowledged: set[str] = set()
        self._socket = socket
        await socket.send(json.dumps({"type": "cf_agent_stream_resume_request", "probeId": secrets.token_hex(4)}))
        for request in [request for request in self._asked if request not in self.ended]:
            await socket.send(self._asked[request])
        for request in self._unwanted - self.ended.keys():
            await socket.send(_cancel(request))
        self.is_open = True
        async for text in socket:
            frame = json.loads(text)
            self.kinds.add(frame["type"])
            if frame["type"] == "cf_agent_stream_resuming" and frame["id"] not in acknowledged:
                acknowledged.add(frame["id"])
                await socket.send(json.dumps({"type": "cf_agent_stream_resume_ack", "id": frame["id"]}))
            elif frame["type"] == "cf_agent_use_chat_response":
                connection["frames"].append(self._note(frame))
            elif frame["type"] == "cf_agent_chat_messages":
                self.transcript = frame["messages"]
            elif frame["type"] == "cf_agent_identity":
                connection["opened"] = time.time()
            self._changed.set()

    def _note(self, frame: JSONObject) -> JSONObject:
        noted = note(frame)
        if noted["kind"] == "done":
            self.ended[noted["request"]] = noted["outcome"]
        elif noted["kind"] == "chunk":
            self.seen[noted["request"]] = self.seen.get(noted["request"], 0) + 1
        return noted


def user_message(text: str, message_id: str = "") -> JSONObject:
    """A person's message as clients send it."""
    return {"id": message_id or secrets.token_hex(8), "role": "user", "parts": [{"type": "text", "text": text}]}


def text_of(message: JSONObject) -> str:
    """All text of a message."""
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def _cancel(request: str) -> str:
    return json.dumps({"type": "cf_agent_chat_request_cancel", "id": request})


def _is_chunk(frame: JSONObject, request: str) -> bool:
    return bool(frame["kind"] == "chunk" and frame["request"] == request)
