"""Sends the frames of turns to one connection: chunks, transcripts, terminal frames.

Chunks come from the log, the transcript and the end from the rows; nothing here waits for a turn.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from chat.agent.base import InstanceKey
from chat.core.wire import frames
from chat.core.wire.chunks import takes_back
from chat.core.wire.handshake import Action, to_frame
from chat.core.wire.recent_set import RecentSet
from chat.models import TurnTrigger
from chat.reads import snapshots
from chat.reads.snapshots import Snapshot, TurnRef
from chat.reads.transcript_windows import TranscriptText
from chat.realtime.recovery_notice import RecoveryNotice
from chat.realtime.resume_memory import ResumeMemory
from chat.realtime.shared_transcripts import frame_of, shared_transcripts
from chat.streams.frame_cache import shared_frames
from chat.streams.logs.database_log import next_cold_offset
from chat.streams.reader import read
from chat.streams.records import Record
from chat.turns.state.status import TurnStatus
from sessions_app.core.messages.tool_states import ACCEPTS_APPROVAL
from thinkproject.kernel.aio import db


class AskedTranscript(NamedTuple):
    """The moment when a transcript was asked for: how many had been, and how often the conversation was cleared."""

    read: int
    clears: int


class FrameSender:
    """Sends to one connection. Nothing of a turn that was cleared away goes out but its `done` frame."""

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        key: InstanceKey,
        user_id: int,
        *,
        label: str = "",
        reads_pages: bool = False,
    ) -> None:
        """`reads_pages`: the client reads pages of the API as well, and asks which of both is older."""
        self._send = send
        self._key = key
        self._user_id = user_id
        self._memory = ResumeMemory(key, user_id, label)
        self._reads_pages = reads_pages
        self._has_path_to = RecentSet[str]()  # requests whose question this client has in its place
        self._stopped = RecentSet[str]()  # requests that this connection stopped
        self._ended = RecentSet[str]()  # requests whose end was sent
        self._cleared = RecentSet[str]()  # turns that were cleared away
        # Answers that this client may hold otherwise than they are stored: each is sent as stored at its end.
        self.doubted = RecentSet[str]()
        self.recovery = RecoveryNotice(send)
        self._clears = 0
        self.version: tuple[str, int] | None = None  # session and last change of the transcript that was sent last
        self._reads = 0  # transcripts that were asked for, and which of them was sent last
        self._sent_read = 0
        self._shown_since: set[str] = set()  # answers that this client was shown live from the start after all of them

    def may_have_crossed(self, listed: Iterable[str]) -> bool:
        """Whether a transcript may still reach the client after it sent a request that lists these messages.

        Frames arrive in order: a client that names an answer has received what was sent before that answer began.
        """
        return self._reads > 0 and self._shown_since.isdisjoint(listed)

    def is_cleared(self, turn_id: str) -> bool:
        """Whether the turn was cleared away: one more chunk would bring its message back for good."""
        return turn_id in self._cleared

    def clear(self, turns: Sequence[TurnRef], *, back: Sequence[TurnRef] = ()) -> None:
        """Stop sending these turns: the conversation was cleared, or another session is followed.

        `back`: turns of the session that is followed now, which may have been sent before.
        """
        self._clears += 1
        self.version = None  # the client has emptied its list by itself, or is about to
        self._cleared.update(turn.turn_id for turn in turns)
        self._cleared.discard(*(turn.turn_id for turn in back))

    async def cleared(self) -> None:
        """Notify the client that the conversation was cleared."""
        await self._send(frames.clear())

    async def chunks(
        self, turn: TurnRef, records: list[Record], *, is_replay: bool, is_held: Callable[[], bool] = lambda: False
    ) -> None:
        """Send records of a log, as long as they may go out; live frames are built once and shared by all sockets."""
        for record in records:
            if turn.turn_id in self._cleared or is_held():
                return
            if takes_back(record.text):  # published clients only ever add to a text
                self.doubted.add(turn.assistant_id)
            if is_replay:
                await self._send(frames.chunk_frame(turn.request_id, record.text, record.offset, replay=True))
            else:
                await self.recovery.went_on(turn.request_id)
                await self._send(shared_frames.frame(turn.turn_id, record, _live_frame(turn.request_id)))
                if record.offset == 0 and self._sent_read == self._reads:
                    self._shown_since.add(turn.assistant_id)
        await self._memory.note(turn.request_id)

    async def replay(self, turn: TurnRef) -> None:
        """Send the log of a turn that is over from its beginning."""
        await self.chunks(turn, await read(turn.turn_id, 0), is_replay=True)

    async def replay_complete(self, turn: TurnRef) -> None:
        """End the replay; live chunks follow. Then send the recovery notice: clients drop it at a replay."""
        await self._send(frames.replay_complete(turn.request_id))
        await self.recovery.replay_completed(turn.request_id)

    def ask(self) -> AskedTranscript:
        """Ask for a transcript: what it holds is to be read after this moment."""
        self._reads += 1
        self._shown_since.clear()
        return AskedTranscript(self._reads, self._clears)

    async def transcript(
        self,
        *,
        connect: bool = False,
        unless_known: bool = False,
        asked: AskedTranscript | None = None,
        snapshot: Snapshot | None = None,
        before: TurnRef | None = None,
    ) -> TranscriptText:
        """Send the window of messages, unless the conversation was cleared while it was read. Returns it.

        No transcript follows one that was asked for later: it might lack what the client has sent in between.
        `unless_known`: nothing is sent to a client that was sent this version already. `snapshot`: read since the
        transcript was `asked` for, or by a client that opens and has asked for none. `before`: a turn whose answer is
        to follow chunk by chunk; where it is stored by now, it is left out.
        """
        is_recent = asked is not None or self._reads == 0
        asked = asked or self.ask()
        found = await shared_transcripts.current(self._key, snapshot if is_recent else None)
        if before is not None:
            found = found.before(before.assistant_id)
        if asked.clears == self._clears and asked.read > self._sent_read:
            self._sent_read = asked.read
            if unless_known and found.version is not None and found.version == self.version:
                return found
            self.version = found.version
            # For the published clients a frame is as they know it.
            await self._send(frame_of(found, connect=connect, with_version=self._reads_pages))
        return found

    async def path_to(self, turn: TurnRef) -> None:
        """Send the transcript before the replay of a turn whose path this client may not show.

        Another tab may have asked, edited or asked again while this one was away. A client that received the beginning
        of the same answer has the path, and would see what it has of the answer vanish for a moment.
        """
        if turn.request_id not in self._has_path_to:
            await self.transcript(connect=True)
            self._has_path_to.add(turn.request_id)  # not earlier: a further acknowledgement may cancel the sending

    async def end_interrupted_answer(self, snapshot: Snapshot) -> None:
        """Send the terminal frame of the answer that this client was receiving when it disconnected, if it has ended.

        The handshake reports a failure that the user has not seen, with its text. What the snapshot finds running is
        ended by its delivery, also when it ends meanwhile.
        """
        request_id, turn = await db(_interrupted, self._memory, self._key) if self._memory.is_kept else ("", None)
        self._has_path_to.add(request_id)
        sent_elsewhere = {each.turn_id for each in (*snapshot.turns, snapshot.failed) if each is not None}
        if turn is not None and turn.is_final and turn.turn_id not in sent_elsewhere:
            await self._send(frames.done(request_id, turn.status, message_ids=turn.message_ids, replay=True))

    async def done(self, turn: TurnRef, outcome: TurnStatus) -> None:
        """End a turn."""
        await self._send(frames.done(turn.request_id, outcome, message_ids=turn.message_ids))

    async def end(
        self,
        ended: TurnRef,
        asked: AskedTranscript | None = None,
        snapshot: Snapshot | None = None,
        *,
        is_late: bool = False,
    ) -> None:
        """Send the transcript before the terminal frame, so that no late transcript removes the user's next message.

        `asked` and `snapshot`: as for `transcript`. `is_late`: the turn was over when this connection learned of it.
        """
        failed = ended.status is TurnStatus.ERROR
        # A turn that has begun may fail before its stream does, in a hook for instance.
        in_stream = failed and ended.has_begun and await db(next_cold_offset, ended.turn_id) > 0
        if in_stream:
            text = ended.error_text
            await self._send(frames.error(ended.request_id, text, done=False, message_ids=ended.message_ids))
        shown = await self.transcript(asked=asked, snapshot=snapshot)
        if failed and not in_stream:
            await self._send(frames.error(ended.request_id, ended.error_text, message_ids=ended.message_ids))
        else:
            await self.done(ended, ended.status)
        is_empty = ended.assistant_id not in shown.ids
        # Clients that saw `start` keep an empty message that is not stored; one that asked to go on from an answer
        # begins the new message with a copy of its parts.
        is_copy = ended.trigger is TurnTrigger.CONTINUE and not ended.is_follow_up
        # The client's own copy is made of the log, and takes the place of what it was sent before the end. A call may
        # have been answered since the log was written; the notification of that may be lost like that of the turn.
        is_doubted = ended.assistant_id in self.doubted or (is_late and _was_answered(shown, ended.assistant_id))
        self.doubted.discard(ended.assistant_id)
        # At an error published transports drop the chunks that were not read yet; pages without the published hook do
        # not take the transcript that follows.
        is_cut = in_stream and not is_empty
        is_odd = is_doubted or is_copy or is_cut or (is_empty and ended.has_begun and not failed)
        self._ended.add(ended.request_id)
        if ended.has_begun and _is_followed(shown, ended.assistant_id):
            await self.transcript()
        elif is_odd or ended.request_id in self._stopped:
            await self.mend(ended)
        if failed:
            await db(snapshots.mark_seen, ended.turn_id, self._user_id)

    async def stop(
        self, turn: TurnRef, stop: Callable[[], Awaitable[bool]], *, is_delivering: Callable[[], bool]
    ) -> None:
        """The client stops this turn and does not listen to it any more: at its end it gets the answer as stored.

        Its own copy, which it protects against transcripts, lacks what was under way to it when it stopped. `stop`
        stops the turn; false: it was over. The end may be sent before that returns. `is_delivering`: it is to come yet.
        """
        had_ended = turn.request_id in self._ended
        self._stopped.add(turn.request_id)
        if await stop():
            return
        if had_ended or not (turn.request_id in self._ended or is_delivering()):
            await self.mend(turn)

    async def mend(self, turn: TurnRef, *, unless_stored: bool = False) -> None:
        """Put the client's copy of an answer right: as it is stored, or away; `unless_stored`: only away."""
        answer = (await shared_transcripts.current(self._key)).find(turn.assistant_id)
        if answer is None:
            await self.transcript()
        elif not unless_stored:
            await self._send(frames.message_updated(answer))

    async def message_updated(self, session_id: str, message_id: str) -> None:
        """Send one stored message of the current session as it is now, unless it is gone."""
        clears = self._clears
        shown = await db(snapshots.shown_message, self._key, session_id, message_id)
        if shown is not None and clears == self._clears:
            change_seq, message = shown
            if self.version == (session_id, change_seq - 1):  # of several changes, others are still to be sent
                self.version = (session_id, change_seq)
            self.doubted.add(message_id)
            await self._send(frames.message_updated(message))

    async def actions(self, actions: list[Action]) -> None:
        """Carry out those decisions of the handshake that are a single frame."""
        for action in actions:
            text = to_frame(action)
            if text is not None:
                await self._send(text)

    async def snapshot(self, *, turn_id: str = "") -> Snapshot:
        """Read the instance as it is now, and one turn of it besides."""
        return await db(snapshots.snapshot, self._key, self._user_id, turn_id=turn_id)


def _interrupted(memory: ResumeMemory, key: InstanceKey) -> tuple[str, TurnRef | None]:
    """The request whose answer was streamed to a client last, and its turn."""
    request_id = memory.last()
    return request_id, snapshots.find_turn(key, request_id=request_id) if request_id else None


def _was_answered(shown: TranscriptText, assistant_id: str) -> bool:
    """Whether a call of an answer's last step is not open any more: it may have been answered from outside."""
    answer = shown.find(assistant_id)
    for part in reversed(answer["parts"] if answer is not None else []):
        if part["type"] == "step-start":
            return False
        if "toolCallId" in part and part.get("state") not in ACCEPTS_APPROVAL:
            return True
    return False


def _is_followed(shown: TranscriptText, assistant_id: str) -> bool:
    """Whether messages follow an answer or wait behind it: those of the next turns, which may have begun.

    Clients keep the answer that they receive at the end of their list until its `done` frame, and put the next one
    behind it: the list must end with the next question by then.
    """
    if assistant_id in shown.ids:
        return shown.places[-1].id != assistant_id
    return shown.waiting > 0


def _live_frame(request_id: str) -> Callable[[Record], str]:
    return lambda record: frames.chunk_frame(request_id, record.text, record.offset)
