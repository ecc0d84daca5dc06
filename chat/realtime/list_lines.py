"""Lines of the list of conversations for clients that show it: sent when one changes, read once a process.

Turns begin, end and ask in quick succession, and a user may have many tabs. A change is read after a short pause by one
query for all connections of the process; further changes of the pause share it.
"""

import asyncio
from typing import Any, Final

from chat.conversations.list import InstanceSummary, list_line
from chat.core.wire import extension_frames
from chat.core.wire.extension_frames import ConversationLine
from chat.realtime.connection import Connection
from thinkproject.kernel.aio import db

PAUSE_SECONDS: Final = 0.05


class SharedLines:
    """The lines that connections wait for. A line is read after every change for which it was asked."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Any, str], asyncio.Task[str | None]] = {}

    def soon(self, user_id: Any, instance_id: str) -> "asyncio.Task[str | None]":
        """The frame of a line, `None` when the conversation is gone. Do not cancel it: others may wait for it."""
        key = (user_id, instance_id)
        task = self._waiting.get(key)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(self._read(key))
            self._waiting[key] = task
        return task

    async def _read(self, key: tuple[Any, str]) -> str | None:
        await asyncio.sleep(PAUSE_SECONDS)
        self._waiting.pop(key, None)  # a change from here on may not be in what is read
        user_id, instance_id = key
        line = await db(list_line, instance_id, user_id)
        return None if line is None else extension_frames.conversation_changed(_shape(line))


def _shape(line: InstanceSummary) -> ConversationLine:
    retry: Any = line.retry
    return ConversationLine(
        id=line.id,
        title=line.title,
        is_running=line.is_running,
        waiting_count=line.waiting_count,
        has_failed=line.has_failed,
        guard=line.guard,
        plans=line.plans,
        project_id=line.project_id,
        retry_at=None if retry is None else retry["retry_at"].isoformat(),
    )


shared_lines = SharedLines()


class ListLines:
    """The lines that one connection is sent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending: dict[asyncio.Task[str | None], asyncio.Task[None]] = {}

    def note(self, instance_id: str) -> None:
        """A conversation has changed; its line is sent soon."""
        line = shared_lines.soon(self._connection.user_id, instance_id)
        if line not in self._sending:
            task = asyncio.create_task(self._send(line))
            self._sending[line] = task
            task.add_done_callback(lambda _: self._sending.pop(line, None))

    async def _send(self, line: "asyncio.Task[str | None]") -> None:
        text = await asyncio.shield(line)
        if text is not None:
            await self._connection.send(text)

    async def close(self) -> None:
        """Send no more."""
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
