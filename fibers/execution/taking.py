"""The taking of names: fibers that wait in Redis for a worker with room run on the shared loop.

See `fibers/queue/names.py`. One name at a time, so that workers share a burst. A name that is taken while the process
dies is lost, as a task would be, and the sweeper sends the fiber again.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, cast

import redis.asyncio
from redis.exceptions import RedisError

from fibers.execution.runner import run_fiber
from fibers.queue.names import SAYING_SECONDS, list_of, taken_key

logger = logging.getLogger(__name__)

WAIT_SECONDS: Final = 1
"""How long one look at an empty list lasts, and so how long a worker that stops may take to end it."""
AGAIN_SECONDS: Final = 1.0


class NameTaker:
    """Takes names while fewer than `room` fibers of names run here. Starting and stopping once, from any thread."""

    def __init__(self, url: str, queues: Sequence[str], room: int, loop: asyncio.AbstractEventLoop) -> None:
        self._url = url
        self._queues = tuple(queues)
        self._room = asyncio.Semaphore(room)
        self._loop = loop
        self._is_stopping = False
        self._running: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to take names."""
        self._ended = asyncio.run_coroutine_threadsafe(self._live(), self._loop)

    def stop(self) -> None:
        """Take no more."""
        self._is_stopping = True

    def join(self) -> None:
        """Wait until the last look has ended. Never on the loop."""
        self._ended.result(timeout=WAIT_SECONDS + 4)

    async def _live(self) -> None:
        client = redis.asyncio.Redis.from_url(
            self._url, socket_connect_timeout=0.5, socket_timeout=WAIT_SECONDS + 4, health_check_interval=15
        )
        saying = asyncio.create_task(self._say(client), name="think-names-said")
        try:
            while not self._is_stopping:
                await self._take(client)
        finally:
            saying.cancel()
            await client.aclose()

    async def _take(self, client: "redis.asyncio.Redis") -> None:
        await self._room.acquire()
        taken: tuple[bytes, bytes] | None = None
        try:
            found = await client.blpop([list_of(queue) for queue in self._queues], timeout=WAIT_SECONDS)
            taken = cast("tuple[bytes, bytes] | None", found)  # nothing is decoded here
        except RedisError as error:
            logger.warning("names not taken", extra={"action": "names_not_taken", "error": type(error).__name__})
            await asyncio.sleep(AGAIN_SECONDS)
        finally:
            if taken is None:
                self._room.release()
        if taken is not None:
            task = self._loop.create_task(run_fiber(taken[1].decode()), name="think-fiber")
            self._running.add(task)
            task.add_done_callback(self._ended_one)

    def _ended_one(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("fiber not run", exc_info=error, extra={"action": "fiber_not_run"})

    async def _say(self, client: "redis.asyncio.Redis") -> None:
        """Say that names are taken here, for as long as they are."""
        while True:
            try:
                for queue in self._queues:
                    await client.set(taken_key(queue), "1", ex=3 * SAYING_SECONDS)
            except RedisError as error:
                logger.warning("taking not said", extra={"action": "taking_not_said", "error": type(error).__name__})
            await asyncio.sleep(SAYING_SECONDS)
