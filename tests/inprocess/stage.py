"""One person, one conversation, any number of connections, the worker and the notifications: all on one `QuietLoop`.

The consumer, the database and the fibers are the product's own. What would be other processes (Redis, Celery) is
replaced by the product's doubles for tests, so that one loop sees everything.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import override_settings

from chat.agent.base import InstanceKey
from chat.instances import notifications
from chat.reads.snapshots import current_transcript
from chat.testing import think_test_settings
from fibers import testing
from fibers.execution.own_worker import first_claimable
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Message
from tests.db.chat.sockets import connection, cookie_of
from tests.inprocess.quiet_loop import QuietLoop
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

ROUNDS = 200
SETTINGS: dict[str, Any] = {
    **think_test_settings,
    "CACHES": {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    "SESSION_ENGINE": "django.contrib.sessions.backends.db",
    "THINK_STREAM_WINDOW_SECONDS": 0.0,
    "THINK_TURNS_PER_MINUTE": 0,
    "THINK_RUNNING_TURNS_PER_USER": 0,
    "THINK_APPROVAL_SECONDS": 0.0,  # no question expires because the clock was moved
}

Notification = tuple[str, JSONObject]


class Socket:
    """One connection: what came over it and was not taken yet."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self.frames: list[JSONObject] = []
        self.closed_with: int | None = None

    async def open(self) -> None:
        """Connect."""
        connected, _ = await self._communicator.connect(timeout=5)
        assert connected

    async def send(self, frame: str) -> None:
        """Send one frame."""
        await self._communicator.send_to(frame)

    def drain(self) -> None:
        """Take what has come."""
        queue = self._communicator.output_queue
        while not queue.empty():
            event = queue.get_nowait()
            if event["type"] == "websocket.close":
                self.closed_with = event.get("code")
            elif event["type"] == "websocket.send":
                self.frames.append(json.loads(event["text"]))

    async def close(self) -> None:
        """Leave, as a cut line does."""
        await self._communicator.disconnect()


class Stage:
    """What happens around the consumer."""

    def __init__(self, loop: QuietLoop, user: User, cookie: str, *, agent: str, name: str) -> None:
        self.loop = loop
        self.key = InstanceKey(owner_id=user.pk, agent=agent, name=name)
        self.hear: Callable[[Notification], list[Notification]] = lambda notification: [notification]
        self.sockets: list[Socket] = []
        self._cookie = cookie
        self._runs: dict[str, asyncio.Task[None]] = {}

    async def connect(self, label: str = "") -> Socket:
        """Open one more connection."""
        query = f"_pk={label}" if label else ""
        path = f"/agents/{self.key.agent}/{self.key.name}"
        socket = Socket(connection(path, cookie=self._cookie, query=query))
        await socket.open()
        self.sockets.append(socket)
        await self.quiet()
        return socket

    async def disconnect(self, socket: Socket) -> None:
        """Cut one."""
        self.sockets.remove(socket)
        await socket.close()
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until nothing moves; everything that was sent has come."""
        await self.loop.quiet()
        for socket in self.sockets:
            socket.drain()

    async def pass_time(self, seconds: float) -> None:
        """Let polls and timers run."""
        await self.loop.pass_time(seconds)
        await self.quiet()

    async def work(self) -> None:
        """Be the worker: start all that may run, go as far as the model goes."""
        for _ in range(ROUNDS):
            await self.quiet()
            self._runs = {fiber_id: run for fiber_id, run in self._runs.items() if not run.done()}
            await db(testing.recover_crashed)
            await db(testing.make_due)
            ids = await db(lambda: first_claimable(Fiber.objects.filter(owner_id=self.key.owner_id)))
            fresh = [fiber_id for fiber_id in ids if fiber_id not in self._runs]
            if not fresh:
                return
            for fiber_id in fresh:
                self._runs[fiber_id] = self.loop.create_task(run_fiber(fiber_id))
        raise AssertionError(f"fibers kept coming for {ROUNDS} rounds")

    async def transcript(self) -> list[Message]:
        """What is stored."""
        return await db(current_transcript, self.key)

    async def leave(self) -> None:
        """End: sockets and runs."""
        for socket in list(self.sockets):
            await self.disconnect(socket)
        for _ in range(ROUNDS):
            for run in self._runs.values():
                run.cancel()
            if all(run.done() for run in self._runs.values()):
                return
            await self.loop.pass_time(1)
        raise AssertionError("a fiber that does not end")


@contextmanager
def staged() -> Iterator[QuietLoop]:
    """A loop of its own, with notifications; everything on it ends with the block."""
    loop = QuietLoop()
    own_loop = notifications._loop
    with override_settings(**SETTINGS):
        notifications._loop = lambda: loop  # type: ignore[assignment]  # a cached function
        try:
            yield loop
        finally:
            loop.run_until_complete(_end_tasks(loop))
            notifications._loop = own_loop
            loop.close()
            cache.clear()


async def _end_tasks(loop: QuietLoop) -> None:
    tasks = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for _ in range(ROUNDS):
        for task in tasks:
            task.cancel()
        await loop.pass_time(1)
        if all(task.done() for task in tasks):
            break
    await loop.shutdown_asyncgens()


def through(stage: Stage) -> None:
    """Let what the stage learns of notifications decide which of them arrive."""
    layer: Any = get_channel_layer()
    send = layer.group_send

    async def group_send(group: str, event: JSONObject) -> None:
        for heard_group, received in stage.hear((group, event)):
            await send(heard_group, dict(received))

    layer.group_send = group_send


def person(name: str = "alice") -> tuple[User, str]:
    """A user who is signed in, and the cookie."""
    user = User.objects.create_user(name, password=f"{name}-password")
    return user, cookie_of(user)
