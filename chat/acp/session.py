"""A session of an editor: one conversation, whose turns run and wait as all do."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from acp.helpers import ContentBlock
from acp.schema import AvailableCommand, AvailableCommandInput, StopReason, UnstructuredCommandInput

from chat.acp.asking import EditorQuestions
from chat.acp.content import message_of, text_of
from chat.acp.updates import Updates
from chat.errors import TurnFailed
from chat.instance.handle import AgentHandle, TypedMessage
from chat.instances.notifications import group_of
from chat.instances.waiting import wait_until
from chat.models import Turn
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.runtime.turn_callbacks import CallbackCaller, follow_turn
from chat.runtime.undo import Undone, sentences_of
from chat.turns.state.status import TurnStatus
from fibers.core.states import TERMINAL, FiberStatus
from fibers.models import Fiber
from thinkproject.kernel.aio import db

COMMANDS: Final = (
    AvailableCommand(
        name="compact",
        description="Summarise the older messages",
        input=AvailableCommandInput(UnstructuredCommandInput(hint="what the summary must keep")),
    ),
    AvailableCommand(name="undo", description="Take the last answer back, with the files that it changed"),
    AvailableCommand(name="redo", description="Bring back what was taken back"),
)
"""Prompts that are no messages, with a slash before the name."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a turn, as far as the protocol goes."""

    status: str
    error: str = ""


class EditorSession:
    """One conversation as an editor has it open. A prompt ends when nothing of its answer is open any more."""

    def __init__(self, handle: AgentHandle, updates: Updates) -> None:
        self._handle = handle
        self._updates = updates
        self._permissions = EditorQuestions(key=handle.key, updates=updates)
        self._stop = asyncio.Event()
        self._position = 0  # of the last turn that the editor has seen

    async def prompt(self, blocks: Sequence[ContentBlock]) -> StopReason:
        """Send a message, or carry out a command, and wait for the end.

        Errors: `TurnFailed` for a turn that failed; those of admission and of the command.
        """
        self._stop = asyncio.Event()
        name, _, rest = text_of(blocks).partition(" ")
        command = self._commands().get(name)
        if command is not None:
            await command(rest.strip())
            return "end_turn"
        return await self._until_idle(self._answer(blocks))

    async def go_on(self) -> None:
        """Show what is still written, and ask what is asked, of a conversation that was left in the middle."""
        self._stop = asyncio.Event()
        self._position = await db(self._last_ended)
        if await db(self._unseen) or await self._permissions.pending():
            await self._until_idle()

    def cancel(self) -> None:
        """Stop the answer that is written, as people stop it elsewhere; questions stay as they are."""
        self._stop.set()

    async def _answer(self, blocks: Sequence[ContentBlock]) -> _Ended:
        done = await self._handle.chat(
            TypedMessage(message_of(blocks)),
            self._updates,
            signal=self._stop,
            waits_for_hook=False,
            timeout_seconds=math.inf,
        )
        self._position = (await db(Turn.objects.get, pk=done.turn_id)).position
        return _Ended(done.status, done.error or "")

    async def _until_idle(self, first: Coroutine[Any, Any, _Ended] | None = None) -> StopReason:
        asking = asyncio.create_task(self._permissions.ask_all())
        ended = _Ended(TurnStatus.COMPLETED)
        try:
            following = await self._next(asking) if first is None else first
            while following is not None:
                ended = await following
                await self._updates.settle()
                following = await self._next(asking)
        finally:
            asking.cancel()
        if self._stop.is_set() or ended.status == TurnStatus.ABORTED or (asking.done() and not asking.cancelled()):
            return "cancelled"
        if ended.status == TurnStatus.ERROR:
            raise TurnFailed(ended.error or "The turn failed.")
        return "end_turn"

    async def _next(self, asking: "asyncio.Task[None]") -> Coroutine[Any, Any, _Ended] | None:
        """Wait for the turn that follows one, by an answer or because it waited; `None` where nothing is open."""
        stopping = asyncio.create_task(self._stop.wait())
        moving = asyncio.create_task(wait_until(self._has_moved, group=group_of(self._handle.key)))
        try:
            await asyncio.wait({stopping, moving, asking}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                await asking  # its error is that of the prompt
            if not moving.done():
                return None
            turns = await db(self._unseen)
        finally:
            stopping.cancel()
            moving.cancel()
        return self._follow(turns[0]) if turns and not self._stop.is_set() else None

    async def _has_moved(self) -> bool:
        """Whether there is another turn, or nothing is left to wait for."""
        return bool(await db(self._unseen)) or not await self._permissions.pending()

    def _unseen(self) -> list[TurnRef]:
        """The turns that the editor has not seen, ended ones too: they may be quicker than their news. Sync."""
        turns = snapshots.turns_after(self._handle.key, self._position)
        return [turn for turn in turns if turn.status is not TurnStatus.SKIPPED]

    def _last_ended(self) -> int:
        """The position before the first turn that has not ended. Sync."""
        turns = snapshots.turns_after(self._handle.key, 0)
        return next((turn.position - 1 for turn in turns if not turn.is_final), turns[-1].position if turns else 0)

    async def _follow(self, shown: TurnRef) -> _Ended:
        turn = await db(Turn.objects.get, pk=shown.turn_id)
        ended = await follow_turn(self._handle.key, turn, CallbackCaller(callback=self._updates, signal=self._stop))
        self._position = max(shown.position, ended.position)
        return _Ended(ended.status, ended.error_text)

    def _commands(self) -> dict[str, Callable[[str], Awaitable[None]]]:
        return {"/compact": self._compact, "/undo": self._undo, "/redo": self._redo}

    async def _compact(self, instructions: str) -> None:
        fiber_id = await self._handle.compact(instructions)
        ended = Fiber.objects.filter(pk=fiber_id, status__in=TERMINAL)

        async def has_ended() -> bool:
            return await db(ended.exists)

        await wait_until(has_ended, group=group_of(self._handle.key))
        fiber = await db(ended.get)
        if fiber.status != FiberStatus.COMPLETED:
            raise TurnFailed((fiber.error or {}).get("message") or "It was stopped.")
        done = "Older messages were summarised." if fiber.result else "There is nothing to summarise yet."
        await self._updates.say(done)

    async def _undo(self, _rest: str) -> None:
        await self._report(await self._handle.undo(), "Undone")

    async def _redo(self, _rest: str) -> None:
        await self._report(await self._handle.redo(), "Redone")

    async def _report(self, undone: Undone, word: str) -> None:
        await self._updates.say(" ".join(sentences_of(undone, word)))
