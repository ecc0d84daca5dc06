"""Viewers of a run that do not read for a while: they hold up no one else, cost little, and get all of it later."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.models import AgentRun, Turn
from chat.realtime.runs import relay
from chat.streams.logs.database_log import write_segments
from chat.streams.logs.log import close_logs, get_log
from chat.streams.records import Append, Record
from fibers.models import Fiber
from tests.db.chat.notes import ROOT, Connect
from tests.db.chat.run_events import STEP, delta, events, events_until, sequences, text_of
from tests.db.chat.runs_by_hand import end_run, start_run
from tests.db.chat.sockets import connection, cookie_of, frames_until
from tests.db.chat.streams.support import eventually
from thinkproject.kernel.aio import db

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("notes")]
ROOM = 4
"""Frames that a server holds for a socket before it makes the sender wait."""

WORDS = [f"{number} " + "x" * 500 for number in range(400)]


@pytest.fixture(autouse=True)
async def _looks_often(settings: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    monkeypatch.setattr(relay, "POLL_SECONDS", 0.2)
    yield
    await close_logs()


class Buffer(asyncio.Queue[Any]):
    """What a server holds for one socket. Senders wait while it is full, as they do for a socket that is not read."""

    def __init__(self) -> None:
        super().__init__(maxsize=ROOM)
        self.waiting = 0
        self.most_waiting = 0
        self.last = ""  # text of the frame that came last, there or waiting
        self._was_full = asyncio.Event()

    async def filled(self) -> None:
        """Wait until a sender has had to wait."""
        await asyncio.wait_for(self._was_full.wait(), 15)

    async def put(self, item: Any) -> None:
        """Take a frame, once there is room for it."""
        self.last = item.get("text") or ""
        self.waiting += 1
        self.most_waiting = max(self.waiting, self.most_waiting)
        if self.full():
            self._was_full.set()
        try:
            await super().put(item)
        finally:
            self.waiting -= 1


@asynccontextmanager
async def slow_socket(owner: User) -> AsyncIterator[Any]:
    """A socket at the parent that is past its handshake and read no further by itself."""
    made = connection(ROOT, cookie=await sync_to_async(cookie_of)(owner))
    made._output_queue = Buffer()  # made when it is first needed
    await made.connect(timeout=15)
    await frames_until(made, "cf_agent_mcp_servers")
    yield made
    await made.disconnect()


class Child:
    """A run whose child speaks as a worker has it speak: into both logs, on and on."""

    def __init__(self, run: AgentRun) -> None:
        self.run = run
        self._offset = 0
        self._epoch = ""

    async def begin(self) -> None:
        assert self.run.turn_id is not None
        await Turn.objects.filter(pk=self.run.turn_id).aupdate(started_at=timezone.now())
        self._epoch = (await get_log().open(self.run.turn_id, fence=1, floor=0)).epoch
        await self.say([STEP])

    async def say(self, texts: list[str]) -> None:
        stream = self.run.turn_id
        assert stream is not None
        first, self._offset = self._offset, self._offset + len(texts)
        await get_log().append([Append(stream=stream, fence=1, epoch=self._epoch, first=first, texts=texts)])
        await db(write_segments, stream, [Record(first + at, text) for at, text in enumerate(texts)])

    async def end(self) -> None:
        """It has said all, and its run has ended well."""
        now = timezone.now()
        turn = await Turn.objects.aget(pk=self.run.turn_id)
        await Fiber.objects.filter(pk=turn.fiber_id).aupdate(status="completed", finished_at=now)
        await Turn.objects.filter(pk=turn.pk).aupdate(finished_at=now)
        await db(end_run, self.run)


async def speaking(owner: User, run_id: str = "r1") -> Child:
    child = Child(await db(start_run, owner, "say: unused", run_id))
    await child.begin()
    return child


async def say_all(child: Child) -> None:
    for begin in range(0, len(WORDS), 20):
        await child.say([delta(word) for word in WORDS[begin : begin + 20]])


async def test_a_viewer_that_does_not_read_holds_up_no_other_and_gets_all_of_it_later(
    connect: Connect, alice: User
) -> None:
    quick = await connect(ROOT)
    async with slow_socket(alice) as slow:
        child = await speaking(alice)
        async with asyncio.timeout(30):
            await say_all(child)
            await child.end()
            sent = await events(quick)
        assert text_of(sent) == "".join(WORDS)
        await slow.output_queue.filled()
        late = await events(slow)
    assert text_of(late) == "".join(WORDS)
    assert sequences(late) == sequences(sent) == list(range(len(sent)))
    assert [frame["event"]["kind"] for frame in late].count("finished") == 1


async def test_what_waits_for_it_is_one_frame_for_each_run_however_much_is_said(connect: Connect, alice: User) -> None:
    quick = await connect(ROOT)
    async with slow_socket(alice) as slow:
        children = [await speaking(alice, f"r{number}") for number in range(3)]
        for child in children:
            await say_all(child)
            await child.end()
        await events(quick, ends=3)
        assert slow.output_queue.most_waiting <= len(children)
        late = await events(slow, ends=3)
    for child in children:
        mine = [frame for frame in late if frame["event"]["runId"] == child.run.run_id]
        assert text_of(mine) == "".join(WORDS)
        assert sequences(mine) == list(range(len(mine)))


async def test_the_end_of_a_run_comes_to_it_although_the_child_goes_on(connect: Connect, alice: User) -> None:
    """What the child says after the run has ended is not the parent's; nothing comes behind the end."""
    async with slow_socket(alice) as slow:
        child = await speaking(alice)
        await say_all(child)
        await db(
            lambda: end_run(child.run, ok=False, status="interrupted", reason="no-progress", childStillRunning=True)
        )
        await eventually(lambda: '"interrupted"' in slow.output_queue.last)
        await child.say([delta("more")])
        late = await events(slow)
        assert late[-1]["event"]["kind"] == "interrupted"
        assert sequences(late) == sorted(set(sequences(late)))
        assert "".join(WORDS).startswith(text_of(late))
        assert await slow.receive_nothing(timeout=0.5)


async def test_a_viewer_that_leaves_without_having_read_leaves_nothing_behind(connect: Connect, alice: User) -> None:
    quick = await connect(ROOT)
    async with slow_socket(alice) as slow:
        child = await speaking(alice)
        await say_all(child)
        seen = await events_until(quick, WORDS[-1])
        await slow.output_queue.filled()
    await child.end()
    assert text_of(seen + await events(quick)) == "".join(WORDS)
    await eventually(lambda: not any("RunFeed" in repr(task) for task in asyncio.all_tasks()))


async def test_a_reader_of_one_frame_now_and_then_misses_none(connect: Connect, alice: User) -> None:
    async with slow_socket(alice) as slow:
        child = await speaking(alice)
        found: list[dict[str, Any]] = []

        async def read() -> None:
            while not found or found[-1]["event"]["kind"] != "finished":
                frame = json.loads(await slow.receive_from(timeout=15))
                if frame["type"] == "agent-tool-event":
                    found.append(frame)
                await asyncio.sleep(0.002)

        reader = asyncio.create_task(read())
        await say_all(child)
        await child.end()
        await asyncio.wait_for(reader, 60)
    assert text_of(found) == "".join(WORDS)
    assert sequences(found) == list(range(len(found)))
