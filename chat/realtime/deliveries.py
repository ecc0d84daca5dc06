"""Work of one connection beside its frames, each piece in a task of its own that ends with the connection."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Deliveries:
    """The tasks that send something to one connection. One that fails is logged, and the connection is given up."""

    def __init__(self, give_up: Callable[[], Awaitable[None]]) -> None:
        """`give_up`: closes the connection, whose client connects again."""
        self._give_up = give_up
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a piece of work."""
        task = asyncio.create_task(self._or_give_up(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop all of it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _or_give_up(self, work: Coroutine[Any, Any, None]) -> None:
        failure: BaseException | None = (await asyncio.gather(work, return_exceptions=True))[0]
        if failure is not None:
            logger.error("delivery failed", exc_info=failure, extra={"action": "delivery_failed"})
            await self._give_up()
