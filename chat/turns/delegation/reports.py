"""The reports of an agent in a turn: progress and milestones as chunks of its own stream, and the run's last progress.

From any thread; everything is done on the loop of the turn.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol

from django.db.models.functions import Now
from django.utils import timezone

from chat.agent.think import Think
from chat.core.loop.turn_state import TurnState
from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.models.runs import AgentRun
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

PROGRESS: Final = "agent-progress"
MILESTONE: Final = "agent-milestone"
COALESCE_SECONDS: Final = 0.2
STORE_SECONDS: Final = 1.0
MAX_TEXT: Final = 500
MAX_MILESTONES: Final = 100


@asynccontextmanager
async def reporting(agent: Think, fold: TurnState, writer: "ReportWriter") -> AsyncIterator["TurnReports"]:
    """Take what the agent of one attempt at a turn reports within the block."""
    key = agent.key
    reports = TurnReports(key.instance_id, fold, writer, is_child=key.parent is not None)
    agent.instance.sub_agents.reports = reports
    try:
        yield reports
    finally:
        agent.instance.sub_agents.reports = None
        await reports.close()


class ReportWriter(Protocol):
    """The log of the turn."""

    def write(self, chunk: Chunk) -> None:
        """Log a chunk."""


class TurnReports:
    """Takes what the agent of one attempt at a turn reports, until it is closed."""

    def __init__(self, instance_id: str, fold: TurnState, writer: ReportWriter, *, is_child: bool) -> None:
        self._instance_id = instance_id
        self._fold = fold
        self._writer = writer
        self._is_child = is_child
        self._loop = asyncio.get_running_loop()
        self._early: list[Chunk] = []  # before the answer has begun
        self._latest: JSONObject | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = self._loop.time() - COALESCE_SECONDS
        self._stored_at = self._loop.time() - STORE_SECONDS
        self._storing: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def progress(self, fraction: float, message: str) -> None:
        """Take a progress."""
        self._run(self._take, {"fraction": min(max(float(fraction), 0.0), 1.0), "message": str(message)[:MAX_TEXT]})

    def milestone(self, name: str, data: JSONObject) -> None:
        """Take a milestone. Errors: `TypeError`, `ValueError` for data that JSON cannot carry."""
        self._run(self._keep, str(name)[:MAX_TEXT], load(dump(data)))

    def flush(self) -> None:
        """Write what came before the answer had begun. Cheap."""
        if self._early and self._fold.started:
            early, self._early = self._early, []
            for chunk in early:
                self._put(chunk)

    async def close(self) -> None:
        """Send the last progress, and wait until it is stored."""
        if self._timer is not None:
            self._send()
        self._is_closed = True
        if self._storing:
            await asyncio.wait(self._storing)

    def _run(self, function: Any, *args: Any) -> None:
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            function(*args)
        else:
            with suppress(RuntimeError):  # the loop is closed: the turn is over
                self._loop.call_soon_threadsafe(function, *args)

    def _take(self, progress: JSONObject) -> None:
        if self._is_closed:
            return
        self._latest = progress
        if progress["fraction"] >= 1.0:
            self._send()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._sent_at + COALESCE_SECONDS, self._send)

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        progress, self._latest = self._latest, None
        if progress is None or self._is_closed:
            return
        self._sent_at = self._loop.time()
        with suppress(ThinkError):  # the log is lost, which the turn finds out itself
            self._write(chunks.data(PROGRESS, progress, part_id=new_id("prg"), transient=True))
        is_due = self._sent_at - self._stored_at >= STORE_SECONDS or progress["fraction"] >= 1.0
        if self._is_child and is_due:
            self._stored_at = self._sent_at
            task = asyncio.create_task(db(self._store, progress))
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    def _store(self, progress: JSONObject) -> None:
        AgentRun.objects.filter(child_id=self._instance_id, finished_at=None).update(
            progress=progress, progress_at=Now()
        )

    def _keep(self, name: str, data: JSONObject) -> None:
        if self._is_closed:
            return
        reached = [*self._fold.message["parts"], *self._early]
        present = [each["data"] for each in reached if each["type"] == f"data-{MILESTONE}"]
        known = next((each for each in reversed(present) if each.get("name") == name), None)
        if known is None and len(present) >= MAX_MILESTONES:
            return
        if known is not None and known.get("data") == data:
            return  # reached again, as by a call that runs again after a crash
        sequence = 1 + max((each["sequence"] for each in present), default=-1)
        value: JSONObject = {"name": name, "sequence": sequence, "at": int(timezone.now().timestamp() * 1000)}
        value |= {"data": data} if data else {}
        self._write(chunks.data(MILESTONE, value, part_id=f"milestone-{name}"))

    def _write(self, chunk: Chunk) -> None:
        if self._fold.started:
            self._put(chunk)
        else:
            self._early.append(chunk)

    def _put(self, chunk: Chunk) -> None:
        self._fold.apply(chunk)
        self._writer.write(chunk)
