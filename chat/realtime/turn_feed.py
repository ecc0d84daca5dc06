"""Deliver turns to one connection: each from its log to its `done` frame, one after another.

A connection learns of a turn when it is accepted, and gets turns in the order of acceptance, in whatever order the
notifications arrive. The handshake decides what may go out live. Content comes from the log, the outcome from the row.
The frame sender decides what is sent and when it must not be.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import NoReturn

from chat.core.wire.handshake import Handshake
from chat.core.wire.recent_set import RecentSet
from chat.models import TurnTrigger
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.realtime.frame_sender import FrameSender
from chat.realtime.path_changes import PathChanges
from chat.streams.reader import Event, follow, follow_new
from chat.streams.records import CaughtUp, Reset
from chat.turns.state.status import TurnStatus
from thinkproject.kernel.aio import db

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""How often a waiting feed reads the row by itself. A lost notification costs no more than this."""


class SeenPositions:
    """Positions of turns known to a connection: all up to one, and some above it."""

    def __init__(self) -> None:
        self.up_to = 0
        self._above: set[int] = set()

    def __contains__(self, position: int) -> bool:
        return position <= self.up_to or position in self._above

    def add(self, position: int) -> None:
        """This one is known."""
        self._above.add(position)
        while self.up_to + 1 in self._above:
            self.add_up_to(self.up_to + 1)

    def add_up_to(self, position: int) -> None:
        """All up to this one are known."""
        self.up_to = max(self.up_to, position)
        self._above = {above for above in self._above if above > self.up_to}


class TurnFeed:
    """The turns of one connection. `enqueue` and `turn_finished` may be called twice for the same turn.

    A turn is delivered once more where it is taken out of `ended` before it is enqueued.
    """

    def __init__(self, sender: FrameSender, handshake: Handshake, *, give_up: Callable[[], Awaitable[None]]) -> None:
        self.sender = sender
        self.seen = SeenPositions()
        self._give_up = give_up
        self._handshake = handshake
        self.pending: dict[
            int, TurnRef
        ] = {}  # by position: those whose end is still to come, some of them over already
        self._own = RecentSet[str]()  # requests that this connection sent
        self.ended = RecentSet[str]()  # turns whose end was sent, or that were left behind
        self._ending: set[str] = set()  # of those, the ones whose end is being sent out of turn
        self._changed = asyncio.Event()
        self.reordered = asyncio.Event()  # another turn may be the next
        self._current: TurnRef | None = None
        self._restart = asyncio.Event()
        self._acknowledged = RecentSet[str]()
        self._settled = RecentSet[str]()  # turns whose end was notified
        self._cut_short = RecentSet[str]()  # turns of which this client has a part, and an offer of the whole
        self.path = PathChanges(self._changed)  # shown while no turn is delivered: the end of a turn shows the path
        self._task = asyncio.create_task(self._serve_or_give_up())

    async def close(self) -> None:
        """Stop. The turns go on without this connection."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def enqueue(self, turn: TurnRef) -> None:
        """A turn was accepted: deliver it when its time comes."""
        self.seen.add(turn.position)
        if turn.turn_id in self.ended or turn.position in self.pending:
            return
        self.pending[turn.position] = turn
        self._changed.set()
        self.reordered.set()

    async def request_accepted(self, turn: TurnRef, *, listed: Iterable[str]) -> None:
        """This connection's own request was accepted; it listed these messages.

        A transcript that crossed the request on its way has wiped the new message from the client's list, or will, and
        the answer would then stand above its question. So a newer one is sent before the answer begins, unless the
        request shows that nothing was under way. An edit has an id of ours which the client does not know.
        """
        self._own.add(turn.request_id)
        has_crossed = turn.trigger is TurnTrigger.SUBMIT and self.sender.may_have_crossed(listed)
        if has_crossed or turn.trigger is TurnTrigger.EDIT:
            await self.sender.transcript(before=turn)
        self.enqueue(turn)

    @property
    def is_idle(self) -> bool:
        """Whether no turn is being sent or pending."""
        return self._current is None and not self.pending

    def is_delivering(self, turn: TurnRef) -> bool:
        """Whether the end of this turn is still to be sent, or being sent."""
        current = self._current
        is_current = current is not None and current.turn_id == turn.turn_id
        return is_current or turn.position in self.pending or turn.turn_id in self._ending

    def acknowledged(self, turn: TurnRef) -> None:
        """The client wants the replay of a turn that runs: once more from the beginning, then live."""
        self.enqueue(turn)
        self._acknowledged.add(turn.request_id)
        if self._current is not None and self._current.turn_id == turn.turn_id:
            self._restart.set()  # not for another turn, which would be sent twice

    async def turn_finished(self, turn_id: str) -> None:
        """Handle the end of a turn. A waiting turn is ended here; the current one by its own delivery."""
        self._settled.add(turn_id)
        self._changed.set()
        waiting = next((t for t in self.pending.values() if t.turn_id == turn_id), None)
        if waiting is not None and waiting is not self._current:
            ended = (await self.sender.snapshot(turn_id=turn_id)).named
            if ended is not None and ended.is_final and not ended.has_begun:
                self._forget(waiting)
                self._ending.add(turn_id)
                await self.sender.end(ended)
                self._ending.discard(turn_id)

    async def clear(self, generation: int, *, is_own: bool = False) -> None:
        """The conversation was cleared, and is of this generation now; turns of earlier ones end here.

        Nothing of them may follow but their `done` frames. `is_own`: the client that clears has emptied its list by
        itself.
        """
        gone = (turn for turn in self.pending.values() if turn.generation < generation)
        turns = sorted(gone, key=lambda turn: turn.position)
        current = self._current
        self.sender.clear(turns)
        for turn in turns:
            self._forget(turn)  # before anything is awaited: each of them ends here and nowhere else
        self._restart.set()
        released = self._handshake.cleared(turn.request_id for turn in turns)
        if not is_own:
            await self.sender.cleared()
        await self.sender.actions(released)
        await _end_early(self.sender, turns, current)

    async def follow(self, turns: Sequence[TurnRef], *, last_position: int) -> None:
        """Switch to another session: send the terminal frames of the former one, the transcript, and enqueue its turns.

        The turns that are left go on by themselves; a client that comes back to their session gets them from their
        beginning.
        """
        kept = {turn.turn_id for turn in turns}
        left = sorted((t for t in self.pending.values() if t.turn_id not in kept), key=lambda turn: turn.position)
        current = self._current
        self.sender.clear(left, back=turns)
        for turn in left:
            self._forget(turn)
        self._restart.set()
        self.ended.discard(*kept)
        self.seen.add_up_to(last_position)
        await self.sender.actions(self._handshake.left(turn.request_id for turn in left))
        await _end_early(self.sender, left, current)
        await self.sender.transcript()
        for turn in turns:
            self.enqueue(turn)

    def _forget(self, turn: TurnRef) -> None:
        self.pending.pop(turn.position, None)
        self.ended.add(turn.turn_id)

    async def _serve_or_give_up(self) -> None:
        [failure] = await asyncio.gather(self._serve(), return_exceptions=True)
        logger.error("delivery failed", exc_info=failure, extra={"action": "delivery_failed"})
        await self._give_up()

    async def _serve(self) -> NoReturn:
        while True:
            self._changed.clear()
            if not self.pending:
                if self.path.take():
                    await self.sender.transcript(unless_known=True)
                else:
                    await self.path.wait()
                continue
            self.reordered.clear()
            turn = await _next_of(self.pending)
            self._current = turn
            try:
                is_served = await self._serve_turn(turn)
            finally:
                self._current = None
            if is_served:
                self._forget(turn)

    async def _serve_turn(self, turn: TurnRef) -> bool:
        """Deliver a turn; false where another one may begin before it."""
        # It had not begun when this connection learned of it, and no end of it was notified since.
        is_new = not turn.has_begun and not turn.is_final and turn.turn_id not in self._settled
        async with aclosing(_Opening(turn, _is_over(turn, self.ended), is_new=is_new)) as opening:
            if not await self._has_come(turn, opening):
                return False
            while turn.turn_id not in self.ended:
                self._restart.clear()
                content = asyncio.ensure_future(self._serve_content(turn, opening))
                restart = asyncio.ensure_future(self._restart.wait())
                try:
                    await asyncio.wait({content, restart}, return_when=asyncio.FIRST_COMPLETED)
                    if content.done():
                        content.result()
                    # Who has acknowledged gets the whole replay.
                    is_over = content.done() and not self._restart.is_set()
                finally:
                    content.cancel()
                    restart.cancel()
                    await asyncio.gather(content, restart, return_exceptions=True)
                if is_over:
                    await self._finish(turn)
                    break
        return True

    async def _has_come(self, turn: TurnRef, opening: "_Opening") -> bool:
        """Wait for the begin or the end of a turn, then offer it to a connection that waits.

        False as soon as others may come before it.
        """
        begin = asyncio.ensure_future(opening.begin())
        reordered = asyncio.ensure_future(self.reordered.wait())
        try:
            while not begin.done() and not (reordered.done() and len(self.pending) > 1):
                waited = {begin} if reordered.done() else {begin, reordered}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not begin.done():
                return False
            begin.result()
        finally:
            begin.cancel()
            reordered.cancel()
            await asyncio.gather(begin, reordered, return_exceptions=True)
        if turn.turn_id not in self.ended:
            await self.sender.actions(self._handshake.stream_started(turn.request_id))
            await self._refresh_path(turn)
        return True

    async def _refresh_path(self, turn: TurnRef) -> None:
        """An edit, a new answer and a submission change the path when they start.

        Their sender gets it as well: a transcript that crossed the request shows the former answer.
        """
        changes_path = turn.trigger in {TurnTrigger.EDIT, TurnTrigger.PROGRAM, TurnTrigger.REGENERATE}
        if changes_path and self._handshake.may_get_live(turn.request_id):
            await self.sender.transcript(before=turn)

    async def _serve_content(self, turn: TurnRef, opening: "_Opening") -> None:
        if not self._handshake.may_get_live(turn.request_id):
            await opening.aclose()
            await _wait(_is_over(turn, self.ended), self._changed)
            return
        is_replay = turn.request_id in self._acknowledged
        if is_replay:
            self._cut_short.discard(turn.turn_id)
            await self.sender.path_to(turn)
        async with aclosing(opening.events(is_replay=is_replay)) as events:
            async for event in events:
                if self.sender.is_cleared(turn.turn_id):
                    return
                if isinstance(event, list):
                    is_held = partial(self._is_held, turn)
                    await self.sender.chunks(turn, event, is_replay=is_replay, is_held=is_held)
                    if is_held():
                        self._cut_short.add(turn.turn_id)
                        await _wait(_is_over(turn, self.ended), self._changed)
                        return
                elif isinstance(event, Reset):
                    # From the beginning: a client begins a replayed message afresh. Published ones may keep parts of
                    # what they have, where it came by a replay over the same socket.
                    is_replay = True
                    self.sender.doubted.add(turn.assistant_id)
                elif is_replay:
                    is_replay = False
                    await self.sender.replay_complete(turn)

    def _is_held(self, turn: TurnRef) -> bool:
        """Whether a live stream was offered since: its live chunks would precede its beginning.

        That holds up to the replay, also once the client has acknowledged. A published client fails at a chunk without
        its beginning, and shows twice what comes live and by the replay.
        A client's own request goes on: clients do not acknowledge what they never stopped listening to.
        """
        is_offered = turn.request_id not in self._own and not self._handshake.may_get_live(turn.request_id)
        return is_offered or self._restart.is_set()

    async def _finish(self, turn: TurnRef) -> None:
        asked = self.sender.ask()
        snapshot = await self.sender.snapshot(turn_id=turn.turn_id)
        ended = snapshot.named
        if ended is not None and ended.was_cleared:
            await _wait_for_clear(turn, self.ended, self._restart)
            asked = self.sender.ask()
            snapshot = await self.sender.snapshot()
        if ended is None or turn.turn_id in self.ended:
            return  # the conversation was deleted or cleared under our feet
        self._forget(turn)  # from here on a clear does not end it a second time
        if turn.turn_id in self._cut_short:
            self.sender.doubted.add(turn.assistant_id)
        await self.sender.end(ended, asked, snapshot, is_late=turn.is_final)
        if self._handshake.is_parked:  # what it waits for may have come since
            snapshot = await self.sender.snapshot()
        await self.sender.actions(self._handshake.settled(turn.request_id, snapshot.view()))


async def _next_of(pending: Mapping[int, TurnRef]) -> TurnRef:
    """The turn that runs first. Most run in the order in which they were accepted; some come before others."""
    turns = {turn.turn_id: turn for _, turn in sorted(pending.items())}
    order = await db(snapshots.lane_order, list(turns)) if len(turns) > 1 else []
    left = {turn.turn_id for turn in pending.values()}
    return next((turns[turn_id] for turn_id in order if turn_id in left), next(iter(turns.values())))


class _Opening:
    """The first records of a turn, awaited before it is offered, and the same stream for what follows."""

    def __init__(self, turn: TurnRef, is_over: Callable[[], Awaitable[bool]], *, is_new: bool) -> None:
        self._turn = turn
        self._is_over = is_over
        self._is_new = is_new
        self._opened: AsyncGenerator[Event, None] | None = None
        self._first: Event | None = None

    async def begin(self) -> None:
        """Wait for the first record of the log or the end of the turn."""
        if self._turn.has_begun:  # a long log need not be read to know that there is one
            return
        if self._is_new:
            self._opened = follow_new(self._turn.turn_id, is_over=self._is_over)
        else:
            self._opened = follow(self._turn.turn_id, is_over=self._is_over)
        async for event in self._opened:
            if not isinstance(event, CaughtUp):
                self._first = event
                return

    async def events(self, *, is_replay: bool) -> AsyncGenerator[Event, None]:
        """The stream from its beginning. A replay says where it is caught up, so it is read anew."""
        if self._opened is None or self._first is None or is_replay:
            await self.aclose()
            self._opened = follow(self._turn.turn_id, is_over=self._is_over)
        else:
            first, self._first = self._first, None
            yield first
        async with aclosing(self._opened) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Leave the stream."""
        opened, self._opened, self._first = self._opened, None, None
        if opened is not None:
            await opened.aclose()


async def _end_early(sender: FrameSender, turns: Sequence[TurnRef], current: TurnRef | None) -> None:
    """End turns that this client gets no more of. The one that was being sent may have begun, a deleted one had."""
    for turn in turns:
        found = (await sender.snapshot(turn_id=turn.turn_id)).named if turn is current else turn
        has_begun = turn is current and (found is None or found.has_begun)
        await sender.done(turn, TurnStatus.ABORTED if has_begun else TurnStatus.SKIPPED)


def _is_over(turn: TurnRef, ended: RecentSet[str]) -> Callable[[], Awaitable[bool]]:
    async def is_over() -> bool:
        return turn.turn_id in ended or await db(snapshots.is_final, turn.turn_id)

    return is_over


async def _wait_for_clear(turn: TurnRef, ended: RecentSet[str], restart: asyncio.Event) -> None:
    """Let the clear that has ended this turn end it for the client too; no longer than a lost notice may cost.

    A client that gets the `done` frame before the notice shows the answer again, below an empty list.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(POLL_SECONDS):
            while turn.turn_id not in ended:
                restart.clear()
                await restart.wait()


async def _wait(is_over: Callable[[], Awaitable[bool]], changed: asyncio.Event) -> None:
    """Send nothing until a turn ends. An acknowledgement cancels this and starts over with a replay."""
    while not await is_over():
        changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await changed.wait()
