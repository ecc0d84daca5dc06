"""Snapshots for sockets: the transcript window, active turns, and outcomes of ended turns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from chat.agent.base import InstanceKey
from chat.core.wire.handshake import FailedTurn, FinishedTurn, InstanceView
from chat.instances.rows import find_instance
from chat.models import Turn, TurnSeen, TurnTrigger
from chat.reads.snapshot_rows import SnapshotRows, TurnRow, ending_row, snapshot_rows, version_row
from chat.turns.state.status import FINAL, TurnStatus, turn_status
from fibers.core.states import RECOVERED, TERMINAL, FiberStatus
from fibers.selectors import is_being_sealed
from fibers.waits import RESUMED
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from sessions_app.messages.stored_texts import StoredText, window_texts
from thinkproject.kernel.jsonvalue import JSONValue, load

NO_USER: Final = 0
"""For a snapshot that is read for its turns, and not for what a user has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRef:
    """A turn as connections handle it."""

    turn_id: str
    session_id: str
    request_id: str
    position: int
    generation: int  # of the conversation; a clear begins the next one
    trigger: TurnTrigger
    status: TurnStatus
    has_begun: bool
    is_recovering: bool
    message_ids: tuple[str, ...]
    assistant_id: str
    error_text: str
    is_follow_up: bool = False  # goes on by itself from answers to calls
    was_cleared: bool = False  # the conversation was cleared since; known where one turn is read by itself

    @property
    def is_final(self) -> bool:
        """Whether the turn has ended."""
        return self.status in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An instance at one moment, for one user. `failed`: the last turn, if it failed and this user has not seen it.

    `change_seq`: the number of the session's last change. `named`: a turn that was asked for besides, of any session.
    """

    instance_id: str | None
    session_id: str | None
    change_seq: int = 0
    last_position: int = 0  # of the newest turn
    turns: tuple[TurnRef, ...] = ()  # of the current session, not ended, in order
    failed: TurnRef | None = None
    state: JSONValue = None
    state_version: int = 0  # 0: none was ever stored
    model_choice: JSONValue = None  # as it is stored
    has_mcp_servers: bool = False  # its own, its owner's or the site's
    has_runs: bool = False  # of other agents for it
    named: TurnRef | None = None

    @property
    def version(self) -> tuple[str, int] | None:
        """The current session and the number of its last change. A transcript that is read later has it."""
        return None if self.session_id is None else (self.session_id, self.change_seq)

    @property
    def active(self) -> TurnRef | None:
        """The turn that runs and has begun its stream."""
        return next((turn for turn in self.turns if turn.has_begun), None)

    @property
    def waiting(self) -> tuple[TurnRef, ...]:
        """Accepted turns that have not begun."""
        return tuple(turn for turn in self.turns if not turn.has_begun)

    def view(self, ended: TurnRef | None = None) -> InstanceView:
        """Input of the handshake's decision. `ended`: the finished turn named by an acknowledgement."""
        active = self.active
        recovering = next((turn.request_id for turn in self.turns if turn.is_recovering), None)
        finished: dict[str, FinishedTurn | FailedTurn] = {}
        if ended is not None and ended.is_final:
            finished[ended.request_id] = _finished(ended)
        return InstanceView(
            active=active.request_id if active else None,
            accepted=tuple(turn.request_id for turn in self.waiting),
            continuation=next((turn.request_id for turn in self.waiting if turn.is_follow_up), None),
            terminal=_failed(self.failed) if self.failed else None,
            recovering=recovering,
            finished=finished,
        )


def _failed(turn: TurnRef) -> FailedTurn:
    return FailedTurn(request_id=turn.request_id, text=turn.error_text, message_ids=turn.message_ids)


def _finished(turn: TurnRef) -> FinishedTurn | FailedTurn:
    if turn.status is TurnStatus.ERROR:
        return _failed(turn)
    return FinishedTurn(request_id=turn.request_id, message_ids=turn.message_ids)


def snapshot(key: InstanceKey, user_id: int, *, turn_id: str = "", request_id: str = "") -> Snapshot:
    """Read it: one query, whatever the history. One turn may be named besides, by its id or its request's."""
    found = snapshot_rows(key, user_id, turn_id=turn_id, request_id=request_id)
    if found.instance_id is None:
        return Snapshot(instance_id=None, session_id=None, has_mcp_servers=bool(found.has_mcp_servers))
    here = [turn for turn in found.turns if turn.session_id == found.session_id]
    active = [turn for turn in here if turn.status not in TERMINAL]
    return Snapshot(
        instance_id=found.instance_id,
        session_id=found.session_id,
        change_seq=found.change_seq or 0,
        last_position=found.turn_count,
        turns=tuple(_turn_ref(turn) for turn in active),
        failed=None if active or not here else _unseen_failure(here[-1], found.generation),
        state=None if found.state is None else load(found.state),
        state_version=found.state_version,
        model_choice=None if found.model_choice is None else load(found.model_choice),
        has_mcp_servers=bool(found.has_mcp_servers),
        has_runs=bool(found.has_runs),
        named=_named(found, turn_id, request_id),
    )


def _named(found: SnapshotRows, turn_id: str, request_id: str) -> TurnRef | None:
    for turn in found.turns:
        if turn.id == turn_id or (not turn_id and turn.request_id == request_id):
            return replace(_turn_ref(turn), was_cleared=turn.generation < found.generation)
    return None


def _unseen_failure(last: TurnRow, generation: int) -> TurnRef | None:
    """The last turn of the current session, if it failed and the user has not seen that, and no clear came since."""
    ref = _turn_ref(last)
    return ref if last.generation == generation and ref.status is TurnStatus.ERROR and not last.is_seen else None


def _turn_ref(row: TurnRow) -> TurnRef:
    return TurnRef(
        turn_id=row.id,
        session_id=row.session_id,
        request_id=row.request_id,
        position=row.position,
        generation=row.generation,
        trigger=TurnTrigger(row.trigger),
        status=turn_status(row.status, row.reason),
        has_begun=bool(row.has_begun),
        is_recovering=_is_recovering(row.status, row.reason, row.attempt, is_silent=bool(row.is_silent)),
        message_ids=tuple(load(row.options).get("answers", ())),
        assistant_id=row.assistant_id,
        error_text=row.error_text,
        is_follow_up=bool(row.has_parent),
    )


def find_turn(key: InstanceKey, *, request_id: str = "", turn_id: str = "") -> TurnRef | None:
    """Find one turn of this instance, by request or by turn id; never another's. One query."""
    return snapshot(key, NO_USER, request_id=request_id, turn_id=turn_id).named


def turns_after(key: InstanceKey, position: int) -> list[TurnRef]:
    """Read the turns of the current session that were accepted after a position, ended ones too.

    None from before the last clear.
    """
    instance = find_instance(key)
    if instance is None:
        return []
    rows = Turn.objects.filter(instance=instance, session_id=instance.session_id, generation=instance.generation)
    return [turn_ref(turn) for turn in rows.filter(position__gt=position).select_related("fiber").order_by("position")]


def answering(turn_id: str) -> Turn | None:
    """Find the turn whose answer has taken the message of this one in."""
    turn = Turn.objects.select_related("answered_by").filter(pk=turn_id).first()
    return None if turn is None else turn.answered_by


def lane_order(turn_ids: Sequence[str]) -> list[str]:
    """These turns in the order in which they run."""
    turns = Turn.objects.filter(pk__in=turn_ids).order_by("fiber__lane_position")
    return list(turns.values_list("pk", flat=True))


def answer_of(turn_id: str) -> Message | None:
    """Read the stored answer of a turn; `None` when it is empty or the turn is gone."""
    turn = Turn.objects.filter(pk=turn_id).first()
    stored = selectors.get_message(turn.session_id, turn.assistant_id) if turn else None
    return None if stored is None else stored.to_ui()


def shown_message(key: InstanceKey, session_id: str, message_id: str) -> tuple[int, Message] | None:
    """Read one stored message of the instance's current session, after the number of its last change.

    Nothing for messages of other sessions.
    """
    instance = find_instance(key, with_session=True)
    if instance is None or instance.session is None or instance.session_id != session_id:
        return None
    stored = selectors.get_message(session_id, message_id)
    return None if stored is None else (instance.session.change_seq, stored.to_ui())


def is_final(turn_id: str) -> bool:
    """Whether a turn has ended and its answer is stored; also true for a deleted turn."""
    turn = ending_row(turn_id)
    if turn is None or turn.status not in TERMINAL:
        return turn is None
    # A turn that lost its workers for good is stored by a fiber of its own, a moment later.
    return bool(turn.is_finished) or not is_being_sealed(turn.fiber_id, turn.fence)


def mark_seen(turn_id: str, user_id: int) -> None:
    """Note that the user saw how a turn ended. Safe to call twice."""
    TurnSeen.objects.bulk_create([TurnSeen(turn_id=turn_id, user_id=user_id)], ignore_conflicts=True)


def transcript(session_id: str | None) -> list[Message]:
    """The window of the active path, then queued user messages, marked; includes those of stopped turns.

    A message whose turn was stopped before it began gets its place with the next turn.
    """
    if session_id is None:
        return []
    found = window_of(session_id)
    stopped = stopped_turns([text.turn_id for text in found if not text.placed])
    return [text.to_ui() if text.placed else queued(text.to_ui(), is_stopped=text.turn_id in stopped) for text in found]


def current_transcript(key: InstanceKey) -> list[Message]:
    """The transcript of an instance's current session; empty before the session exists."""
    version = version_of(key)
    return [] if version is None else transcript(version[0])


def version_of(key: InstanceKey) -> tuple[str, int] | None:
    """An instance's current session and the number of its last change. A transcript that is read later has it."""
    return version_row(key)


def window_of(session_id: str) -> list[StoredText]:
    """The messages of a transcript, not parsed. One query."""
    return window_texts(session_id)


def stopped_turns(turn_ids: Sequence[str]) -> set[str]:
    """Filter the turns that have ended. No query without turns."""
    if not turn_ids:
        return set()
    ended = Turn.objects.filter(pk__in=turn_ids, fiber__status__in=TERMINAL)
    return set(ended.values_list("pk", flat=True))


def queued(message: Message, *, is_stopped: bool) -> Message:
    """A message without a place as clients get it: marked `queued`, and `stopped` where its turn was."""
    marks = {"queued": True, "stopped": True} if is_stopped else {"queued": True}
    return {**message, "metadata": {**(message.get("metadata") or {}), **marks}}


def turn_ref(turn: Turn) -> TurnRef:
    """Describe a turn. Needs its fiber loaded; no query."""
    status = turn_status(turn.fiber.status, turn.fiber.reason)
    return TurnRef(
        turn_id=turn.pk,
        session_id=turn.session_id,
        request_id=turn.request_id,
        position=turn.position,
        generation=turn.generation,
        trigger=TurnTrigger(turn.trigger),
        status=status,
        has_begun=turn.started_at is not None,
        is_recovering=_is_recovering(
            turn.fiber.status, turn.fiber.reason, turn.fiber.attempt, is_silent=bool(getattr(turn, "is_silent", False))
        ),
        message_ids=tuple(turn.options.get("answers", ())),
        assistant_id=turn.assistant_id,
        error_text=turn.error_text,
        is_follow_up=turn.parent_id is not None,
    )


def _is_recovering(status: str, reason: str, attempt: int, *, is_silent: bool) -> bool:
    """Whether a turn recovers from a crash: its worker is silent, or another worker continues it or is about to.

    A turn that waits for something, or has waited, has lost nothing.
    """
    if status == FiberStatus.PENDING:
        return reason == RECOVERED
    if status != FiberStatus.RUNNING:
        return False
    goes_on = attempt > 1 and reason != RESUMED
    return goes_on or is_silent
