"""The rules of resuming a connection: which frames it receives, and which live chunks it may follow.

One `Handshake` a socket. Events go in with a view of the instance, actions come out in order; the consumer carries them
out. It does no I/O and knows no clock. Source: `docs/reference/protocol.md`, connecting and resuming.

The gate: a connection that was offered a stream gets nothing of it live until it acknowledges; it then gets the whole
replay and the rest live. A connection that was there before the stream began gets it live from the start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from chat.core.wire import frames
from chat.core.wire.recent_set import RecentSet

IDLE: Final = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTurn:
    """A request that ended in an error, with the text for people."""

    request_id: str
    text: str
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTurn:
    """A request that ended without an error. `message_ids`: the user messages it answered."""

    request_id: str
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """Facts about the instance at the time of an event.

    Shape: `active` is the request whose stream has begun and not ended; `accepted` are the requests that wait, oldest
    first; `continuation` is the one of them that answers a tool call; `terminal` is the newest failure that this user
    has not seen; `recovering` is the request under recovery; `finished` are the ended turns that were looked up.
    """

    active: str | None = None
    accepted: tuple[str, ...] = ()
    continuation: str | None = None
    terminal: FailedTurn | None = None
    recovering: str | None = None
    finished: Mapping[str, FinishedTurn | FailedTurn] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, waits or is left to be sent."""
        return self.active is None and not self.accepted and self.terminal is None


@dataclass(frozen=True, slots=True)
class SendResuming:
    """Offer a stream."""

    request_id: str
    probe_id: str | None = None


@dataclass(frozen=True, slots=True)
class SendPending:
    """Ask to wait for a request that has not begun; `None`: it depends on answers that others owe."""

    request_id: str | None
    probe_id: str | None = None


@dataclass(frozen=True, slots=True)
class SendNone:
    """There is nothing to resume; the reason is included only on request."""

    reason: str | None = None
    probe_id: str | None = None


@dataclass(frozen=True, slots=True)
class SendTranscript:
    """Send the window of messages, marked as this connection's first transcript."""


@dataclass(frozen=True, slots=True)
class SendRecovering:
    """A request is under recovery."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Replay:
    """Send the request's log from its beginning; `then_live`: close with "replay complete", go on with the rest."""

    request_id: str
    then_live: bool


@dataclass(frozen=True, slots=True)
class SendTerminal:
    """End a failed request with its text."""

    turn: FailedTurn


@dataclass(frozen=True, slots=True)
class MarkSeen:
    """Remember that this user saw how the request failed."""

    request_id: str


@dataclass(frozen=True, slots=True)
class RemoveUnstored:
    """Take the answer of a replayed failure from the client unless it is stored: it would stay there, empty."""

    request_id: str


@dataclass(frozen=True, slots=True)
class SendDone:
    """End a request that is over or unknown, as a replay."""

    request_id: str
    message_ids: tuple[str, ...] | None = None


Action: TypeAlias = (
    SendResuming
    | SendPending
    | SendNone
    | SendTranscript
    | SendRecovering
    | Replay
    | SendTerminal
    | MarkSeen
    | RemoveUnstored
    | SendDone
)


class Handshake:
    """The state of one connection: offered turns, pending acknowledgement, and turns it must not receive."""

    def __init__(self) -> None:
        self._offered = RecentSet[str]()
        self._acknowledged = RecentSet[str]()
        self._cleared = RecentSet[str]()
        self._is_parked = False
        self._waits_for_answers = False  # parked, and the turn it waits for is not accepted yet

    @property
    def is_parked(self) -> bool:
        """Whether the connection was asked to wait for a stream that has not begun."""
        return self._is_parked

    def may_get_live(self, request_id: str) -> bool:
        """Whether live chunks of the request may go to this connection now."""
        return request_id not in self._offered and request_id not in self._cleared

    def connected(self, view: InstanceView) -> list[Action]:
        """Begin. During an active stream no transcript is sent: it would overwrite the rebuilt answer."""
        if view.active is not None:
            return [self._offer(view.active)]
        actions: list[Action] = []
        if view.accepted:
            actions.append(self._park(view.accepted[-1]))
        actions.append(SendTranscript())
        if view.recovering is not None:
            actions.append(SendRecovering(view.recovering))
        return actions

    def resume_requested(self, probe_id: str | None, view: InstanceView) -> list[Action]:
        """Answer a probe: every one gets exactly one answer, also when the same was offered before."""
        if view.active is not None:
            return [self._offer(view.active, probe_id)]
        if view.continuation is not None:
            return [self._park(view.continuation, probe_id)]
        if view.terminal is not None:
            return [SendResuming(view.terminal.request_id, probe_id)]
        if view.accepted:
            return [self._park(view.accepted[-1], probe_id)]
        return [SendNone(IDLE, probe_id)]

    def wait_for_answers(self, probe_id: str | None) -> list[Action]:
        """Ask a client to wait that answered one call of several: a turn follows when the others are answered."""
        self._waits_for_answers = True
        return [self._park(None, probe_id)]

    def acked(self, request_id: str, view: InstanceView) -> list[Action]:
        """Replay the acknowledged stream, and end finished requests so that no client waits for them."""
        self._offered.discard(request_id)
        if request_id == view.active:
            self._acknowledged.add(request_id)
            actions: list[Action] = [Replay(request_id, then_live=True)]
            if view.recovering == request_id:
                actions.append(SendRecovering(request_id))
            return actions
        if request_id in view.accepted:
            self._is_parked = True
            return []
        ended = view.finished.get(request_id)
        if view.terminal is not None and view.terminal.request_id == request_id:
            ended = view.terminal
        if isinstance(ended, FailedTurn):
            replayed = Replay(request_id, then_live=False)
            return [replayed, SendTerminal(ended), MarkSeen(request_id), RemoveUnstored(request_id)]
        return [SendDone(request_id, ended.message_ids if ended else None)]

    def stream_started(self, request_id: str) -> list[Action]:
        """Offer the stream to a connection that waits; any other gets it live from here."""
        return [self._offer(request_id)] if self._is_parked else []

    def resumed(self, request_id: str, *, has_begun: bool) -> list[Action]:
        """Offer the stream of a request that had ended and goes on; ask to wait where it had not begun."""
        return [self._offer(request_id) if has_begun else self._park(request_id)]

    def settled(self, request_id: str, view: InstanceView) -> list[Action]:
        """Forget the request; release a connection that waits when nothing is left to wait for."""
        self._offered.discard(request_id)
        self._acknowledged.discard(request_id)
        if not self._is_parked or view.accepted or self._waits_for_answers:
            return []
        if view.active is not None:
            return [self._offer(view.active)]
        self._is_parked = False
        return [SendNone()]

    def cleared(self, request_ids: Iterable[str]) -> list[Action]:
        """Close the gate for good for the requests that ran or waited before the clear."""
        gone = list(request_ids)
        self._cleared.update(gone)
        self._offered.discard(*gone)
        was_parked, self._is_parked = self._is_parked, False
        self._waits_for_answers = False
        return [SendNone()] if was_parked else []

    def left(self, request_ids: Iterable[str]) -> list[Action]:
        """Forget the requests of a session that is not followed any more; they may come back with it."""
        gone = list(request_ids)
        self._offered.discard(*gone)
        self._acknowledged.discard(*gone)
        was_parked, self._is_parked = self._is_parked, False
        self._waits_for_answers = False
        return [SendNone()] if was_parked else []

    def _offer(self, request_id: str, probe_id: str | None = None) -> Action:
        self._is_parked = self._waits_for_answers = False
        # Clients acknowledge an id once a socket: closing the gate again would starve them.
        if request_id not in self._acknowledged:
            self._offered.add(request_id)
        return SendResuming(request_id, probe_id)

    def _park(self, request_id: str | None, probe_id: str | None = None) -> Action:
        self._is_parked = True
        return SendPending(request_id, probe_id)


def to_frame(action: Action) -> str | None:
    """Encode an action of one frame; `None` for actions that need the transcript, the log or a write."""
    match action:
        case SendResuming():
            return frames.resuming(action.request_id, action.probe_id)
        case SendPending():
            return frames.pending(action.request_id, action.probe_id)
        case SendNone():
            return frames.resume_none(reason=action.reason, probe_id=action.probe_id)
        case SendRecovering():
            return frames.recovering(True, action.request_id)
        case SendTerminal():
            return frames.error(action.turn.request_id, action.turn.text, message_ids=action.turn.message_ids or None)
        case SendDone():
            return frames.done(action.request_id, None, message_ids=action.message_ids, replay=True)
        case SendTranscript() | Replay() | MarkSeen() | RemoveUnstored():
            return None
        case _:
            assert_never(action)
