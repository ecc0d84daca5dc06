"""HTTP server of the scripted provider, on plain asyncio; logs every chunk it sends.

Many streams at little cost: one timer per chunk and stream, no tasks. The log is append-only JSON lines: `request`, one
`chunk` for each chunk as it *should* be sent, `end`. It is the oracle of tests, so it never reports what a directive
"misbehave" did to the wire.
"""

import asyncio
import email.utils
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import msgspec

from chat.llm.scripted.asked import read_asked
from chat.llm.scripted.manners import read_manners
from chat.llm.scripted.memory import Memory
from chat.llm.scripted.plan import Defaults, Plan, ScriptMessage, Unit, make_plan, read_chat, read_responses
from chat.llm.scripted.recordings import read_recording
from chat.llm.scripted.script import HttpError
from chat.llm.scripted.wires import ChatWire, ResponsesWire, Wire, chat_answer
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

_STREAM_HEAD: Final = (
    "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\n"  # one header a line
    "cache-control: no-store\r\ntransfer-encoding: chunked\r\n\r\n"
)
_BURST: Final = 64
_MAX_BODY: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Faults of the provider beyond its scripts. `rejects`: body keys refused with status 400.

    `recordings`: the folder that `play` takes answers from; with `/<provider>/v1` as the base URL the server refuses
    what that provider refuses.
    """

    defaults: Defaults = field(default_factory=Defaults)
    models: tuple[str, ...] = ("scripted",)
    rejects: tuple[str, ...] = ()
    api_key: str = ""
    log_bodies: bool = True
    recordings: Path = Path()


class Log:
    """The append-only log. Lines are written together, a few milliseconds after they were made."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[bytes] | None = path.open("ab", buffering=0) if path else None
        self._lines: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, **entry: JSONValue) -> None:
        """Add a line."""
        if self._file is None:
            return
        if not self._lines:
            self._loop.call_later(0.005, self.flush)
        self._lines.append(msgspec.json.encode({"at": time.time(), **entry}) + b"\n")

    def flush(self) -> None:
        """Write queued records."""
        if self._file is not None and self._lines:
            self._file.write(b"".join(self._lines))
            self._lines.clear()

    def close(self) -> None:
        """Write queued records and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


class Provider:
    """State shared by all connections of one server."""

    def __init__(self, options: ServerOptions, log: Log) -> None:
        self.options = options
        self.log = log
        self.scripts: list[tuple[str, str]] = []
        self.memory = Memory(options.rejects)
        self._numbers = itertools.count(1)
        self._connections: set[Connection] = set()
        self._connection_numbers = itertools.count(1)

    def connected(self, connection: "Connection") -> int:
        """A client came; returns its number."""
        self._connections.add(connection)
        return next(self._connection_numbers)

    def disconnected(self, connection: "Connection") -> None:
        """A client went."""
        self._connections.discard(connection)

    async def close(self) -> None:
        """Cut every connection and close the log."""
        for connection in list(self._connections):
            connection.cut()
        await asyncio.sleep(0)  # the loop notifies the connections of their end, and they log it
        await asyncio.sleep(0)
        self.log.close()

    def next_request_id(self) -> str:
        """A number for the next request."""
        return f"{next(self._numbers):06d}"


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; requests one after the other."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: Answer | None = None
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self.provider.connected(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        self._buffer += data
        if len(self._buffer) > _MAX_BODY:
            self.drop()
        self._next_request()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The client, or we, closed."""
        self.provider.disconnected(self)
        if self._answer is not None:
            self._answer.closed()
            self._answer = None

    def cut(self) -> None:
        """Close at once, as a provider that dies."""
        if self._transport is not None:
            self._transport.abort()

    def write(self, data: bytes) -> None:
        """Send a piece of a chunked body."""
        if self._transport is not None and data and not self._transport.is_closing():
            self._transport.write(b"%x\r\n%s\r\n" % (len(data), data))

    def write_plain(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def drop(self) -> None:
        """Close the connection in mid-body; data already sent still arrives."""
        if self._transport is not None:
            self._transport.close()

    def finished(self) -> None:
        """The answer is over; the next request of this connection may start."""
        self._answer = None
        self.loop.call_soon(self._next_request)

    def send_json(self, status: int, value: JSONValue, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """A whole response."""
        body = msgspec.json.encode(value)
        extra = "".join(f"{name}: {text}\r\n" for name, text in headers)
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
        self.write_plain(head.encode() + body)

    def _next_request(self) -> None:
        if self._answer is not None:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).decode("latin-1")
        lines = head.split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        size = int(headers.get("content-length", "0"))
        if len(self._buffer) < end + 4 + size:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + size])
        del self._buffer[: end + 4 + size]
        method, path, _ = lines[0].split(" ", 2)
        self._route(method, path.partition("?")[0], headers, body)

    def _route(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        options = self.provider.options
        if options.api_key and headers.get("authorization") != f"Bearer {options.api_key}":
            given = headers.get("authorization", "").removeprefix("Bearer ")
            message = f"Incorrect API key provided: {given}."
            self.send_json(401, {"error": {"message": message, "code": "invalid_api_key"}})
            return
        if method == "GET" and path.endswith("/models"):
            data = [{"id": name, "object": "model", "created": at} for at, name in enumerate(options.models)]
            self.send_json(200, {"object": "list", "data": data})
            return
        try:
            value = json.loads(body)
            if path == "/_scripted/scripts":
                self.provider.scripts.insert(0, (str(value["match"]), str(value["script"])))
                self.send_json(200, {})
            elif path.endswith("/chat/completions"):
                self._ask(value, read_chat(value), path, is_chat=True)
            elif path.endswith("/responses"):
                self._ask(value, read_responses(value), path, is_chat=False)
            else:
                self.send_json(404, {"error": {"message": f"no such path {path}", "code": "not_found"}})
        except (ValueError, KeyError, TypeError, OSError) as error:
            self.send_json(400, {"error": {"message": f"not a request: {error!r}", "code": "invalid_request_error"}})

    def _ask(
        self, body: JSONObject, conversation: tuple[str, list[ScriptMessage]], path: str, *, is_chat: bool
    ) -> None:
        provider = self.provider
        system, messages = conversation
        plan = make_plan(system, messages, provider.scripts, provider.options.defaults, read_asked(body))
        request_id = provider.next_request_id()
        provider.log.write(
            kind="request",
            request=request_id,
            connection=self._number,
            marker=plan.marker,
            round=plan.round,
            continues=plan.continues,
            mismatch=plan.mismatch,
            body=body if provider.options.log_bodies else None,
        )
        error = provider.memory.refusal(plan, body, len(system) + sum(len(message.text) for message in messages))
        error = error or refused_request(provider.options.recordings, plan, body, path)
        if error is not None:
            self._refuse(request_id, plan, error)
            return
        if plan.plays:
            self._play(request_id, plan)
            return
        model = str(body.get("model") or "scripted")
        wire: Wire = (
            ChatWire(request_id, model, with_usage=bool((body.get("stream_options") or {}).get("include_usage")))
            if is_chat
            else ResponsesWire(request_id, model)
        )
        if is_chat and not body.get("stream"):
            self.send_json(200, chat_answer(request_id, model, plan.units, finish_of(plan), plan.usage))
            provider.log.write(kind="end", request=request_id, marker=plan.marker, how="whole")
            return
        self._answer = Answer(self, request_id, plan, wire)
        self._answer.start()

    def _play(self, request_id: str, plan: Plan) -> None:
        """Send a recorded answer, an event at a time."""
        recording = read_recording(self.provider.options.recordings, plan.plays)
        self.write_plain(_STREAM_HEAD.format(media_type=recording.media_type).encode())
        log = self.provider.log
        for number, event in enumerate(recording.body.split(b"\n\n")):
            self.write(event if number == 0 else b"\n\n" + event)
            text = event.decode("utf-8", "replace")
            log.write(kind="chunk", request=request_id, marker=plan.marker, index=number, unit="recorded", text=text)
        self.write_plain(b"0\r\n\r\n")
        log.write(kind="end", request=request_id, marker=plan.marker, how="played")

    def _refuse(self, request_id: str, plan: Plan, error: HttpError) -> None:
        headers = []
        for name, value in error.headers:
            if name == "retry-after-date":
                headers.append(("retry-after", email.utils.formatdate(time.time() + float(value), usegmt=True)))
            else:
                headers.append((name, value))
        body = {"error": {"message": error.message, "type": error.code, "code": error.code}}
        self.send_json(error.status, body, tuple(headers))
        self.provider.log.write(kind="end", request=request_id, marker=plan.marker, how="error", status=error.status)


class Answer:
    """One streamed answer: sends unit after unit by timers, until its end or its scripted break."""

    def __init__(self, connection: Connection, request_id: str, plan: Plan, wire: Wire) -> None:
        self._connection = connection
        self._request_id = request_id
        self._plan = plan
        self._wire = wire
        self._log = connection.provider.log
        self._cut = connection.provider.memory.first_cut(plan)
        self._lies = {lie.at: lie.how for lie in plan.lies}
        self._next = 0
        self._sent = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None

    def start(self) -> None:
        """Send the head, then chunk after chunk."""
        if self._cut is not None and self._cut.how == "hang":
            self._cut_now(self._begin)
            return
        self._begin()

    def closed(self) -> None:
        """The connection went away in the middle."""
        if self._timer is not None:
            self._timer.cancel()
        self._end_log("closed")
        self._log.flush()

    def _begin(self) -> None:
        self._cut = None if self._cut is not None and self._cut.how == "hang" else self._cut
        self._connection.write_plain(_STREAM_HEAD.format(media_type="text/event-stream").encode())
        self._send(self._wire.begin())
        self._due = self._connection.loop.time()
        self._schedule()

    def _schedule(self) -> None:
        loop = self._connection.loop
        units = self._plan.units
        unit = units[self._next] if self._next < len(units) else None
        if unit is not None and (unit.rate or unit.pause):
            self._due = max(self._due, loop.time() - 0.5) + unit.pause + (1 / unit.rate if unit.rate else 0)
            self._timer = loop.call_at(self._due, self._step)
        else:
            self._timer = loop.call_soon(self._step)

    def _step(self) -> None:
        """Send the next chunk; chunks without a rate go in bursts, so that others get their turn."""
        for _ in range(_BURST):
            if self._cut is not None and self._sent >= self._cut.after:
                self._cut_now(self._step)
                return
            if self._next >= len(self._plan.units):
                self._finish()
                return
            unit = self._plan.units[self._next]
            self._next += 1
            self._send_unit(unit)
            following = self._plan.units[self._next] if self._next < len(self._plan.units) else None
            if following is not None and (following.rate or following.pause):
                break
        self._schedule()

    def _send_unit(self, unit: Unit) -> None:
        data = self._wire.unit(unit)
        index, self._sent = self._sent, self._sent + (unit.kind != "call_end")
        if data:
            self._log.write(
                kind="chunk",
                request=self._request_id,
                marker=self._plan.marker,
                index=index,
                unit=unit.kind,
                text=unit.text,
                bytes=data.decode(),
            )
        lie = self._lies.get(index) if unit.kind != "call_end" else None
        if lie != "skip":
            self._send(data + data if lie == "repeat" else data)

    def _send(self, data: bytes) -> None:
        self._connection.write(data)

    def _finish(self) -> None:
        self._connection.write(self._wire.end(finish_of(self._plan), self._plan.usage))
        self._close_body("finished")

    def _close_body(self, how: str) -> None:
        self._connection.write_plain(b"0\r\n\r\n")
        self._end_log(how)
        self._connection.finished()

    def _cut_now(self, resume: Callable[[], None]) -> None:
        cut, self._cut = self._cut, None
        assert cut is not None
        if cut.how in ("stall", "hang"):
            self._log.write(kind="stall", request=self._request_id, marker=self._plan.marker)
            if cut.seconds is not None:
                self._timer = self._connection.loop.call_later(cut.seconds, resume)
        elif cut.how == "drop":
            self._end_log("dropped")
            self._request_id = ""
            self._connection.drop()
        elif cut.how == "garbage":
            self._send(b"data: {this is not JSON}\n\n")
            self._step()
        else:
            if cut.how == "error":
                self._send(self._wire.error(cut.code, "The script asked for an error in the stream."))
            self._close_body(cut.how)

    def _end_log(self, how: str) -> None:
        if self._request_id:
            self._log.write(kind="end", request=self._request_id, marker=self._plan.marker, how=how, chunks=self._sent)


def refused_request(folder: Path, plan: Plan, body: JSONObject, path: str = "") -> HttpError | None:
    """The refusal by the provider whose name the path begins with, or of what a recorded answer wants back.

    A provider refuses what it is known to refuse; without one whatever lacks in the history is refused.
    """
    manners = read_manners(folder, path.strip("/").partition("/")[0])
    if manners is not None and (refusal := manners.refusal_of(body)):
        return refusal
    for name in plan.played:
        recording = read_recording(folder, name)
        words = recording.refusal_of(body.get("messages") or [])
        if words and (manners is None or "refusal" in recording.facts):
            return HttpError(line=-1, status=400, code="invalid_request_error", message=words)
    return None


def finish_of(plan: Plan) -> str:
    """The Chat Completions finish reason of a plan."""
    if plan.finish:
        return plan.finish
    return "tool_calls" if any(unit.kind.startswith("call") for unit in plan.units) else "stop"


async def start_server(
    options: ServerOptions, *, host: str = "127.0.0.1", port: int = 0, log_path: Path | None = None
) -> tuple[asyncio.Server, Provider, int]:
    """Listen. Returns the server, its provider and the port."""
    provider = Provider(options, Log(log_path))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(provider), host, port, backlog=1024)
    return server, provider, int(server.sockets[0].getsockname()[1])
