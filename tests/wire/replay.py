"""Play a recording against the real consumer and compare what each connection gets with what was recorded.

The recording is the script: what clients sent is sent when all before it has come, the model says a chunk when the
recording shows it, the worker works when something of a turn is due. Nothing is waited for by the clock: the loop
tells when nothing moves any more, and what has not come by then does not come.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from tests.inprocess.quiet_loop import QuietLoop
from tests.inprocess.stage import Socket, Stage, person
from tests.wire.frame_amendments import ANY, PERHAPS
from tests.wire.playing import MODELS, RecordedModel, steps
from tests.wire.recordings import Event, client_text, with_decoded_body
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

_LABEL = re.compile(r"^(REQ|MSG|CALL|APPROVAL|ROOM|TAG|ID)\d+$")
_OPENING = ("text-start", "reasoning-start")
_RESPONSE = "cf_agent_use_chat_response"
FAR = 1_000_000


class Differs(AssertionError):
    """What came is not what was recorded."""


@dataclass
class Names:
    """Which of our ids stands for which label of the recording. One for one, both ways."""

    ours: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def bind(self, label: str, value: str) -> bool:
        """Note the pair, or tell whether it is the one that was noted."""
        return self.ours.setdefault(label, value) == value and self.labels.setdefault(value, label) == label

    def is_same(self, recorded: JSONValue, found: JSONValue) -> bool:
        """Compare, labels by what they stand for."""
        if recorded == ANY:
            return True
        if isinstance(recorded, str) and isinstance(found, str) and _LABEL.match(recorded):
            return self.bind(recorded, found)
        if isinstance(recorded, dict) and recorded.get("metadata") == {"queued": PERHAPS}:
            plain = {key: value for key, value in recorded.items() if key != "metadata"}
            return self.is_same(plain, found) or self.is_same({**plain, "metadata": {"queued": True}}, found)
        if isinstance(recorded, dict) and isinstance(found, dict):
            return recorded.keys() == found.keys() and all(self.is_same(recorded[k], found[k]) for k in recorded)
        if isinstance(recorded, list) and isinstance(found, list):
            return len(recorded) == len(found) and all(map(self.is_same, recorded, found))
        return bool(recorded == found)

    def ours_in(self, value: JSONValue) -> JSONValue:
        """Put our ids where the recording has labels: what a client repeats of what it was sent."""
        if isinstance(value, str):
            return self.ours.get(value, value)
        if isinstance(value, dict):
            return {key: self.ours_in(item) for key, item in value.items()}
        return [self.ours_in(item) for item in value] if isinstance(value, list) else value


class Replay:
    """One recording, played once."""

    def __init__(self, loop: QuietLoop, expected: list[Event]) -> None:
        self._events = expected
        self._model = MODELS["current"] = RecordedModel(steps(expected))
        self._names = Names()
        user, cookie = person()
        identity = next(event.frame for event in expected if event.frame.get("type") == "cf_agent_identity")
        self._stage = Stage(loop, user, cookie, agent=identity["agent"], name="ROOM1")
        self._sockets: dict[str, Socket] = {}
        self._parts: dict[tuple[str, str, str], str] = {}  # the open part of a stream: its id here

    async def play(self) -> None:
        """Play all. Errors: `Differs` at the first difference."""
        try:
            for at, event in enumerate(self._events):
                await self._event(at, event)
            await self._stage.work()
            await self._stage.quiet()
            for client, socket in self._sockets.items():
                if socket.frames:
                    raise Differs(f"{client} got more than was recorded: {dump(socket.frames[0])}")
        finally:
            await self._model.allow("", FAR)
            await self._stage.leave()

    async def _event(self, at: int, event: Event) -> None:
        match event.direction:
            case "open":
                self._sockets[event.client] = await self._stage.connect()
            case "close":
                await self._stage.disconnect(self._sockets.pop(event.client))
            case "out":
                await self._prepare(at, event)
                frame = self._names.ours_in(event.frame)
                assert isinstance(frame, dict)
                await self._sockets[event.client].send(client_text(frame))
                await self._stage.quiet()
            case "in":
                await self._arrives(at, event)

    async def _prepare(self, at: int, event: Event) -> None:
        """A replay holds what the model had said when it was asked for."""
        if event.frame["type"] != "cf_agent_stream_resume_ack":
            return
        mine = [later.frame for later in self._events[at:] if later.client == event.client]
        seqs = [frame["seq"] for frame in mine if frame.get("replay") and "seq" in frame]
        if seqs:
            await self._allow(event.frame["id"], max(seqs))

    async def _arrives(self, at: int, event: Event) -> None:
        socket = self._sockets[event.client]
        more = [partial(self._say, at, more=number) for number in range(3)]
        efforts: list[Callable[[], Awaitable[None]]] = [self._stage.work, *more]
        while not socket.frames and efforts:
            await efforts.pop(0)()
            await self._stage.quiet()
        where = f"line {event.index}, {event.client}: "
        if not socket.frames:
            raise Differs(f"{where}nothing came instead of {dump(event.frame)}")
        found = with_decoded_body(socket.frames.pop(self._place(event, socket)))
        if not self._names.is_same(self._expected_part(event, found), found):
            raise Differs(f"{where}\n  recorded {dump(event.frame)}\n  found    {dump(found)}")

    def _place(self, event: Event, socket: Socket) -> int:
        """Where the frame that is due stands: changed messages and chunks may overtake each other, nothing else may."""
        kinds = [_kind(frame) for frame in socket.frames]
        due = _kind(event.frame)
        if due == "chunk" and (call_id := _result_of(event.frame)):
            return self._place_of_result(call_id, socket)
        if due in _APART and due in kinds and all(kind in _APART for kind in kinds[: kinds.index(due)]):
            return kinds.index(due)
        return 0

    def _place_of_result(self, call_id: str, socket: Socket) -> int:
        """Calls run side by side, and their results come in any order: numbers are given in the order of coming."""
        bodies = [with_decoded_body(frame) for frame in socket.frames]
        for at, body in enumerate(bodies):
            if not (found := _result_of(body)):
                break
            if found == self._names.ours_in(call_id):
                for earlier in socket.frames[:at]:
                    earlier["seq"] += 1
                socket.frames[at]["seq"] -= at
                return at
        return 0

    async def _say(self, at: int, *, more: int = 0) -> None:
        """Let the model go on: up to the chunk that is due, or to the end of the request that is due.

        A part begins with its first word, so the one after may be needed.
        """
        for event in self._events[at:]:
            if event.direction == "in" and event.frame["type"] == _RESPONSE:
                await self._allow(event.frame["id"], event.frame.get("seq", FAR) + more)
                return

    async def _allow(self, request_id: str, seq: int) -> None:
        """Chunk by chunk: those that come at once travel together."""
        while await self._model.allow(request_id, seq):
            await self._stage.quiet()

    def _expected_part(self, event: Event, found: JSONObject) -> JSONObject:
        """Names of text parts differ: one that begins is bound, and those of its deltas must be the same."""
        recorded, body = event.frame.get("$body"), found.get("$body")
        if recorded is None or body is None or "id" not in recorded or recorded["type"] != body["type"]:
            return event.frame
        key = (event.client, event.frame["id"], recorded["id"])
        if recorded["type"] in _OPENING:
            self._parts[key] = body["id"]
        return {**event.frame, "$body": {**recorded, "id": self._parts.get(key, "")}}


_APART = ("chunk", "cf_agent_message_updated")


def _kind(frame: JSONObject) -> str:
    return "chunk" if "seq" in frame else str(frame["type"])


def _result_of(frame: JSONObject) -> str:
    """The call whose result the frame tells, or nothing."""
    body = frame.get("$body") or {}
    return str(body["toolCallId"]) if str(body.get("type", "")).startswith("tool-output") else ""
