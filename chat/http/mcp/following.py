"""Follow a turn until it ends or waits, and report what it says meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from chat.conf import chat_settings
from chat.core.wire.chunks import STATUS, Chunk
from chat.errors import Unauthenticated
from chat.reads.snapshots import is_final
from chat.streams.reader import follow
from chat.streams.records import Reset
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load

REPORT_SECONDS: Final = 0.25
MAX_REPORT: Final = 2_000
"""Characters of one report; of more, the newest."""


class ReportsProgress(Protocol):
    """Reports progress: a number that only grows, and a text."""

    def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Send it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The state in which a turn was left. `waits_for`: what it is parked for; nothing when it has ended."""

    waits_for: tuple[str, ...] = ()


async def follow_turn(turn_id: str, *, report: ReportsProgress, holds: Callable[[], bool]) -> Followed:
    """Wait for the turn's end, or until it parks. Errors: `Unauthenticated` once the caller may no longer."""
    clock = asyncio.get_running_loop().time
    asked_at = clock()

    async def check() -> None:
        nonlocal asked_at
        if clock() - asked_at >= chat_settings.authority_seconds:
            asked_at = clock()
            if not await db(holds):
                raise Unauthenticated

    async def is_over() -> bool:
        await check()
        return await db(is_final, turn_id)

    progress = _Progress(report, clock)
    async with aclosing(follow(turn_id, is_over=is_over)) as events:
        async for event in events:
            if isinstance(event, Reset):
                progress.forget()
            elif isinstance(event, list):
                await check()
                for record in event:
                    chunk = load(record.text)
                    if waits := _waits(chunk):
                        return Followed(waits_for=waits)
                    progress.take(chunk)
                await progress.send()
    return Followed()


def _waits(chunk: Chunk) -> tuple[str, ...]:
    if chunk["type"] != STATUS or chunk["data"].get("kind") != "waiting":
        return ()
    return tuple(str(wait.get("label") or wait.get("kind") or "") for wait in chunk["data"].get("waits", [])) or ("",)


class _Progress:
    """Texts since the last report. Progress is the number of characters and calls so far."""

    def __init__(self, report: ReportsProgress, clock: Callable[[], float]) -> None:
        self._report = report
        self._clock = clock
        self._sent_at = float("-inf")
        self._count = 0
        self._new = ""

    def take(self, chunk: Chunk) -> None:
        """Take what people would see of a chunk."""
        if chunk["type"] == "text-delta":
            self._new += str(chunk.get("delta", ""))
            self._count += len(str(chunk.get("delta", "")))
        elif chunk["type"] == "tool-input-available":
            self._new += f"[{chunk.get('title') or chunk.get('toolName')}]"
            self._count += 1

    def forget(self) -> None:
        """Drop what does not hold any more; the number never falls."""
        self._new = ""

    async def send(self) -> None:
        """Report, unless there is nothing new or the last report was a moment ago."""
        if self._new and self._clock() - self._sent_at >= REPORT_SECONDS:
            text, self._new, self._sent_at = self._new[-MAX_REPORT:], "", self._clock()
            await self._report(float(self._count), None, text)
