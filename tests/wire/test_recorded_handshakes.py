"""The handshake machine, fed with what happened in a recording, says what the recorded server said."""

from collections import defaultdict
from typing import TypeAlias

import pytest

from chat.core.wire.handshake import (
    Action,
    FailedTurn,
    FinishedTurn,
    Handshake,
    InstanceView,
    Replay,
    SendTranscript,
    to_frame,
)
from tests.wire.recordings import NAMES, Event, amended, events
from thinkproject.kernel.jsonvalue import JSONObject, load

Said: TypeAlias = tuple[str, JSONObject]

RESUME_TYPES = ("cf_agent_stream_resuming", "cf_agent_stream_pending", "cf_agent_stream_resume_none")


class Room:
    """The instance as far as the recording tells it, and one handshake a client. Each client is a user of its own."""

    def __init__(self, name: str) -> None:
        self.events = list(events(name))
        self.handshakes: dict[str, Handshake] = {}
        self.active: str | None = None
        self.accepted: list[str] = []
        self.continuation: str | None = None
        self.ended: dict[str, FinishedTurn | FailedTurn] = {}
        self.failed: FailedTurn | None = None
        self.seen: dict[str, set[str]] = defaultdict(set)
        self.expected: dict[str, list[Said]] = defaultdict(list)
        self.recorded: dict[str, list[Said]] = defaultdict(list)
        self.replaying: set[tuple[str, str]] = set()
        self.live_without_leave: list[Event] = []

    def view(self, client: str) -> InstanceView:
        failed = self.failed
        return InstanceView(
            active=self.active,
            accepted=tuple(self.accepted),
            continuation=self.continuation,
            terminal=failed if failed and failed.request_id not in self.seen[client] else None,
            finished=self.ended,
        )

    def play(self) -> None:
        for index, event in enumerate(self.events):
            match event.direction:
                case "open":
                    self.handshakes[event.client] = Handshake()
                    self.do(event.client, self.handshakes[event.client].connected(self.view(event.client)))
                case "close":
                    del self.handshakes[event.client]
                case "out":
                    self.sent(event, index)
                case "in":
                    self.got(event)

    def do(self, client: str, actions: list[Action]) -> None:
        for action in actions:
            text = to_frame(action)
            if text is not None:
                frame = load(text)
                self.expected[client].append((frame["type"], frame))
            elif isinstance(action, SendTranscript):
                self.expected[client].append(("transcript", {}))
            elif isinstance(action, Replay):
                self.expected[client].append(("replay", {"id": action.request_id}))
                if action.then_live:
                    self.expected[client].append(("replay-complete", {"id": action.request_id}))

    def sent(self, event: Event, index: int) -> None:
        frame, handshake, view = event.frame, self.handshakes[event.client], self.view(event.client)
        match frame["type"]:
            case "cf_agent_use_chat_request":
                self.accepted.append(frame["id"])
                self.failed = None
            case "cf_agent_tool_result" | "cf_agent_tool_approval":
                self.continuation = next(e.frame["id"] for e in self.events[index:] if e.frame.get("id"))
                self.accepted.append(self.continuation)
            case "cf_agent_stream_resume_request":
                self.do(event.client, handshake.resume_requested(frame.get("probeId"), view))
            case "cf_agent_stream_resume_ack":
                self.do(event.client, handshake.acked(frame["id"], view))

    def got(self, event: Event) -> None:
        frame, kind = event.frame, event.frame["type"]
        if kind in RESUME_TYPES:
            if kind == "cf_agent_stream_resuming" and "probeId" not in frame:
                self.start(frame["id"])
            self.recorded[event.client].append((kind, frame))
        elif frame.get("connect"):
            self.recorded[event.client].append(("transcript", {}))
        elif kind == "cf_agent_use_chat_response":
            self.got_response(event)

    def got_response(self, event: Event) -> None:
        frame, request_id = event.frame, event.frame["id"]
        said = self.recorded[event.client]
        if frame.get("replay") and frame.get("seq") == 0:
            said.append(("replay", {"id": request_id}))
            self.replaying.add((event.client, request_id))
        elif frame.get("replayComplete"):
            said.append(("replay-complete", {"id": request_id}))
            self.replaying.discard((event.client, request_id))
        elif frame["done"] and (event.client, request_id) in self.replaying:
            said.append((frame["type"], frame))
        if frame.get("error"):
            self.failed = FailedTurn(request_id=request_id, text=frame["body"], message_ids=tuple(frame["messageIds"]))
        if not frame.get("replay") and "seq" in frame:
            self.start(request_id)
            if not self.handshakes[event.client].may_get_live(request_id):
                self.live_without_leave.append(event)
        if frame["done"]:
            self.end(event)

    def start(self, request_id: str) -> None:
        if request_id == self.active or request_id in self.ended:
            return
        self.active = request_id
        self.accepted = [waiting for waiting in self.accepted if waiting != request_id]
        self.continuation = None if self.continuation == request_id else self.continuation
        for client, handshake in self.handshakes.items():
            self.do(client, handshake.stream_started(request_id))

    def end(self, event: Event) -> None:
        request_id = event.frame["id"]
        self.seen[event.client].add(request_id)
        if request_id in self.ended:
            return
        self.active = None if self.active == request_id else self.active
        self.accepted = [waiting for waiting in self.accepted if waiting != request_id]
        is_failure = self.failed is not None and self.failed.request_id == request_id
        self.ended[request_id] = (
            self.failed if self.failed and is_failure else FinishedTurn(request_id=request_id, message_ids=())
        )
        for client, handshake in self.handshakes.items():
            self.do(client, handshake.settled(request_id, self.view(client)))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in amended("handshake")])
def test_handshake_matches_the_recording(name: str) -> None:
    room = Room(name)
    room.play()
    assert room.recorded
    for client, said in room.recorded.items():
        assert room.expected[client] == said


@pytest.mark.parametrize("name", NAMES)
def test_no_live_chunk_was_recorded_where_the_gate_is_closed(name: str) -> None:
    room = Room(name)
    room.play()
    assert room.live_without_leave == []


@pytest.mark.parametrize("name", sorted(amended("handshake")))
def test_every_listed_handshake_differs(name: str) -> None:
    room = Room(name)
    room.play()
    assert room.expected != room.recorded
