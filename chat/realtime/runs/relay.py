"""Send one run of another agent to one connection of its parent: its beginning, its child's chunks, its end.

The chunks come from the logs of the child's turns, of which there are several when the child went on from a person's
answer. The run's row decides that it is over, which may be before its child is done. What was sent is known by its
sequence number: 0 for the beginning, the place in the logs and one for a chunk, the next one for the end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final

from chat.core.wire.extension_frames import (
    RunAborted,
    RunChunk,
    RunEvent,
    RunFailed,
    RunFinished,
    RunInterrupted,
    RunStarted,
    agent_tool_event,
)
from chat.streams.frame_cache import shared_frames
from chat.streams.reader import follow
from chat.streams.records import CaughtUp, Record, Reset
from chat.sub_agents.views import RunTurn, RunView, ends_now, next_turn, read_run
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

POLL_SECONDS: Final = 2.0
REPLAY_BYTES: Final = 256 * 1024
"""Of one run's chunks that a client is sent again when it connects; its later steps come live."""
"""How often a relay that waits reads the row by itself. A lost notification costs no more than this."""

PROGRESS: Final = "data-agent-progress"
_REASONS: Final = frozenset(
    {
        "no-progress",
        "window-exceeded",
        "not-tailable",
        "inspect-timeout",
        "inspect-failed",
        "recovery-deadline",
        "budget-exceeded",
    }
)


class RunRelay:
    """One run on its way to one connection. `serve` returns after the end was sent."""

    def __init__(self, run: RunView, send: Callable[[str], Awaitable[None]], *, is_replay: bool) -> None:
        """`is_replay`: the connection opens, and what has happened so far is old to it."""
        self._run = run
        self._send = send
        self._is_replay = is_replay
        self._changed = asyncio.Event()
        self._base = 0  # records of the turns before the present one
        self._next = 1  # sequence number of what comes next
        self._replayed_bytes = 0
        self._is_cut = False  # there was too much to send again: what follows waits for the next live step
        self._has_gap = False

    def changed(self) -> None:
        """The run's row has changed."""
        self._changed.set()

    async def serve(self) -> None:
        """Send the run to its end."""
        run = self._run
        await self._event(
            RunStarted(
                run_id=run.run_id,
                agent_type=run.agent,
                order=run.order,
                input_preview=run.input_preview,
                display=run.display,
            ),
            0,
        )
        turn = await self._turn_after(None)
        while turn is not None:
            await self._serve_turn(turn)
            turn = await self._turn_after(turn)
        if self._has_gap:
            await self._progress()
        await self._event(_end_of(self._run), self._next)

    async def _turn_after(self, former: RunTurn | None) -> RunTurn | None:
        """The turn that follows another one, as soon as there is one; none once the run is over without it."""
        while True:
            self._changed.clear()
            run = self._run
            if run.turn_id is not None and former is None:
                return RunTurn(turn_id=run.turn_id, is_final=run.turn_is_final)
            following = None if former is None else await db(next_turn, former.turn_id)
            if following is not None or run.outcome is not None:
                return following
            self._is_replay = False
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._changed.wait()
            if not await self._read_row():
                return None

    async def _read_row(self) -> bool:
        """Read the run again; false when it is gone."""
        found = await db(read_run, self._run.id)
        self._run = found or self._run
        return found is not None

    async def _serve_turn(self, turn: RunTurn) -> None:
        """Send a turn's chunks, until it has ended or the run is over for its parent."""
        content = asyncio.ensure_future(self._chunks_of(turn))
        try:
            while not content.done():
                changed = asyncio.ensure_future(self._changed.wait())
                try:
                    await asyncio.wait({content, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                    await asyncio.gather(changed, return_exceptions=True)
                self._changed.clear()
                if not content.done() and not await self._goes_on():
                    return
            content.result()
        finally:
            content.cancel()
            await asyncio.gather(content, return_exceptions=True)
        if self._run.outcome is None:
            await self._read_row()

    async def _goes_on(self) -> bool:
        """Whether more chunks are to be sent: the run is under way, or its child has ended and said all."""
        return await self._read_row() and (self._run.outcome is None or self._run.turn_is_final)

    async def _chunks_of(self, turn: RunTurn) -> None:
        async def is_over() -> bool:
            return turn.is_final or await db(ends_now, self._run.id, turn.turn_id)

        async with aclosing(follow(turn.turn_id, 0, is_over=is_over)) as events:
            async for event in events:
                if isinstance(event, list):
                    for record in event:
                        await self._chunk(turn, record)
                elif isinstance(event, Reset):
                    self._is_replay = True
                elif isinstance(event, CaughtUp):
                    if self._has_gap and self._is_replay:
                        await self._progress()
                    self._is_replay = False
                else:
                    self._base += event.offset

    async def _chunk(self, turn: RunTurn, record: Record) -> None:
        sequence = self._base + record.offset + 1
        self._next = max(self._next, sequence + 1)
        if self._is_left_out(record):
            self._has_gap = True
            return

        def build(record: Record) -> str:
            event = RunChunk(run_id=self._run.run_id, body=record.text)
            return agent_tool_event(
                event, sequence=sequence, parent_tool_call_id=self._run.call_id or None, replay=self._is_replay
            )

        kind = f"run {self._run.id} {self._is_replay}"
        await self._send(shared_frames.frame(turn.turn_id, record, build, kind))

    def _is_left_out(self, record: Record) -> bool:
        """Whether a chunk is beyond what is sent again. A message goes on at a step, not in the middle of a text."""
        if self._is_replay:
            self._replayed_bytes += len(record.text)
            self._is_cut = self._is_cut or self._replayed_bytes > REPLAY_BYTES
        elif self._is_cut and load(record.text).get("type") == "start-step":
            self._is_cut = False
        return self._is_cut

    async def _progress(self) -> None:
        """Send the last progress by itself, where the chunk that had it was left out."""
        run, self._has_gap = self._run, False
        if run.progress is not None:
            name = f"{run.id}:{run.progress_at and run.progress_at.isoformat()}"
            body: JSONObject = {"type": PROGRESS, "id": name, "data": run.progress, "transient": True}
            await self._event(RunChunk(run_id=run.run_id, body=dump(body), unstored_id=name), self._next)

    async def _event(self, event: RunEvent, sequence: int) -> None:
        call_id = self._run.call_id or None
        await self._send(
            agent_tool_event(event, sequence=sequence, parent_tool_call_id=call_id, replay=self._is_replay)
        )


def _end_of(run: RunView) -> RunEvent:
    """The last event of a run. One that is gone, with its conversation, was stopped."""
    outcome = run.outcome or {"status": "aborted"}
    text, reason = _text(outcome.get("error")), outcome.get("reason")
    match outcome.get("status"):
        case "completed":
            return RunFinished(run_id=run.run_id, summary=_text(outcome.get("summary", outcome.get("output"))))
        case "aborted" | "skipped":
            return RunAborted(run_id=run.run_id, reason=_text(reason) or text or None)
        case "interrupted":
            is_running = outcome.get("childStillRunning")
            return RunInterrupted(
                run_id=run.run_id,
                error=text,
                reason=reason if reason in _REASONS else None,
                child_still_running=is_running if isinstance(is_running, bool) else None,
            )
        case _:
            return RunFailed(run_id=run.run_id, error=text)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value)
