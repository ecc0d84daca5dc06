"""The client's copy of a conversation: messages, state and turns, updated by frames. No I/O.

Resuming is decided here: an offered stream is acknowledged once a connection, replayed chunks are distinguished from
new ones by
`seq`, and a turn of which this client may have missed a piece is not over before the piece was fetched.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import cast

from chat.client.bounded_queue import Backpressure
from chat.client.turn import FAILED, Turn
from chat.client.turn_registry import TurnRegistry
from chat.core.wire import server_frames as sf
from chat.core.wire.chunks import validate
from chat.core.wire.extension_frames import McpServers, McpState, ModelChosen
from chat.core.wire.frames import ClientFrame, ResumeAck
from chat.errors import ChunkInvalid
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

logger = logging.getLogger(__name__)


class ConversationState:
    """Pass each server frame to `take` and send the returned frames. `fetch_rest` is called for an incomplete turn."""

    def __init__(
        self, backpressure: Backpressure, *, fetch_rest: Callable[[Turn, str], None], on_ended: Callable[[Turn], None]
    ) -> None:
        self.messages: list[Message] = []
        self.state: JSONValue = None
        self.identity: tuple[str, str] | None = None
        self.recovering: str | None = None
        self.mcp = McpState()
        self.state_error: str | None = None
        self.model_choice: JSONObject | None = None
        self.model: str | None = None
        self.model_notice = ""
        self.choice_errors: dict[str, str] = {}  # of choices under way, by id; empty while there is none
        self.registry = TurnRegistry(backpressure)
        self._fetch_rest = fetch_rest
        self._on_ended = on_ended
        self._connection = 0
        self._acked: set[str] = set()
        self._received: set[str] = set()  # requests of which something came over this connection
        self._probes: dict[str, asyncio.Future[str | None]] = {}

    # Connections

    def connected(self, connection: int) -> None:
        """A connection begins: nothing was acknowledged over it yet."""
        self._connection = connection
        self._acked.clear()
        self._received.clear()

    def unfinished(self) -> list[ClientFrame]:
        """Requests after the server's greeting: the outcome of own turns that it has not mentioned."""
        mine = (turn for turn in self.registry.running.values() if turn.is_own and turn.is_accepted)
        waiting = [turn for turn in mine if turn.request_id not in self._acked]
        return [ResumeAck(id=turn.request_id) for turn in waiting if turn.connection != self._connection]

    def lost(self, error: Exception) -> None:
        """There will be no other connection."""
        self.registry.lose(error)
        self.disconnected(error)

    def disconnected(self, error: Exception) -> None:
        """This connection has ended; what asked over it has no answer."""
        for probe in self._probes.values():
            if not probe.done():
                probe.set_exception(error)
        self._probes.clear()

    # Questions

    def probe(self, probe_id: str) -> "asyncio.Future[str | None]":
        """Note a question for a stream to join; the answer is the id of a request, or nothing."""
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._probes[probe_id] = future
        return future

    def state_is(self, value: JSONValue) -> None:
        """Record that the server has processed this client's state update."""
        if self.state_error is None:
            self.state = value

    # Frames

    def take(self, frame: sf.ServerFrame) -> list[ClientFrame]:
        """Take one frame; returns what to answer."""
        match frame:
            case sf.Response() if frame.id in self.choice_errors:
                self.choice_errors[frame.id] = frame.body
            case sf.Response():
                return self._response(frame)
            case sf.Resuming():
                return self._resuming(frame)
            case sf.Pending(probe_id=probe_id, id=request_id):
                self._answer_probe(probe_id, request_id)
            case sf.ResumeNone(probe_id=probe_id):
                self._answer_probe(probe_id, None)
            case _:
                self._learn(frame)
        return []

    def _learn(self, frame: sf.ServerFrame) -> None:
        match frame:
            case sf.Transcript(messages=messages):
                self.messages = cast("list[Message]", messages)
            case sf.MessageUpdated(message=message):
                self._updated(cast("Message", message))
            case sf.Cleared():
                self.messages = []
            case sf.State(state=state):
                self.state = state
            case sf.StateError(error=text):
                self.state_error = text
            case sf.Identity(name=name, agent=agent):
                self.identity = (agent, name)
            case ModelChosen():
                self.model_choice, self.model = frame.model_choice, frame.model
                self.model_notice = frame.model_notice
            case McpServers(mcp=mcp):
                self.mcp = mcp
            case sf.Recovering(recovering=recovering, id=request_id):
                self.recovering = request_id if recovering else None
            case _:
                pass  # answers of calls are the calls' business

    def _answer_probe(self, probe_id: str | None, request_id: str | None) -> None:
        future = self._probes.pop(probe_id, None) if probe_id else None
        if future is not None and not future.done():
            future.set_result(request_id)

    def _resuming(self, frame: sf.Resuming) -> list[ClientFrame]:
        self._answer_probe(frame.probe_id, frame.id)
        if self.registry.has_ended(frame.id) or (frame.id in self._acked and frame.id in self._received):
            return []
        self._acked.add(frame.id)
        return [ResumeAck(id=frame.id)]

    def _updated(self, message: Message) -> None:
        self.messages = [message if known.get("id") == message.get("id") else known for known in self.messages]

    def _response(self, frame: sf.Response) -> list[ClientFrame]:
        if self.registry.has_ended(frame.id):
            return []
        turn = self.registry.running.get(frame.id)
        if turn is None:
            if frame.done or frame.error:
                return []  # the end of a turn that this client never received
            turn = self.registry.observe(frame.id)
        self._received.add(frame.id)
        if frame.done:
            self._done(turn, frame)
        elif frame.error:
            turn.error_text = frame.body
        elif frame.seq is not None:
            return self._chunk(turn, frame, frame.seq)
        elif not frame.replay:
            self._apply(turn, frame.body)  # transient, so never replayed
        return []

    def _chunk(self, turn: Turn, frame: sf.Response, seq: int) -> list[ClientFrame]:
        if seq in (0, turn.next_seq):
            turn.connection = self._connection
        if seq > turn.next_seq:
            if turn.is_behind:
                return []
            turn.is_behind = True  # one was lost on the way: request a replay
            return [ResumeAck(id=turn.request_id)]
        if seq == turn.next_seq:
            turn.next_seq += 1
            turn.is_behind = False
            self._apply(turn, frame.body)
        return []

    def _apply(self, turn: Turn, body: str) -> None:
        try:
            chunk = validate(load(body))
        except (ValueError, ChunkInvalid):
            logger.info("chunk ignored", extra={"action": "client_chunk_ignored", "request_id": turn.request_id})
            return
        turn.take(chunk, len(body))

    def _done(self, turn: Turn, frame: sf.Response) -> None:
        if turn.is_own and not turn.is_accepted and frame.refused:
            turn.refusal = frame.body
            return
        if frame.error:
            turn.error_text = frame.body
        outcome = frame.outcome or (FAILED if turn.error_text else "completed")
        is_bare = frame.replay and frame.outcome is None  # the answer to an acknowledgement that came too late
        is_whole = turn.connection == self._connection and not turn.is_behind and not is_bare
        if is_whole or outcome == "skipped":
            self.finish(turn, outcome)
        else:
            self.registry.end(turn)
            self._fetch_rest(turn, outcome)

    def lists(self, message_id: str) -> bool:
        """Whether the messages have this one."""
        return any(message.get("id") == message_id for message in self.messages)

    def take_rest(self, turn: Turn, bodies: Iterable[str]) -> None:
        """Take the chunks that follow the last one taken."""
        for body in bodies:
            turn.next_seq += 1
            self._apply(turn, body)

    def finish(self, turn: Turn, outcome: str) -> None:
        """The turn has ended and everything of it is here."""
        self.registry.end(turn)
        stored = next((message for message in self.messages if message.get("id") == turn.message_id), None)
        if stored is not None:
            turn.take_stored(stored)
        if outcome == "completed":
            self._on_ended(turn)
        if not turn.is_over:
            turn.finish(outcome, is_final=True)
