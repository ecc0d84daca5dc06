"""Runs of actions in this process, so that duplicates at the same moment share one."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

R = TypeVar("R")

Place: TypeAlias = tuple[str, str, str]
"""Scope, action and key."""


@dataclass(slots=True)
class _Run:
    input_hash: str
    end: "Future[Any]" = field(default_factory=Future)


class SharedRuns(Generic[R]):
    """Runs that go on, over all loops and threads of the process."""

    def __init__(self) -> None:
        self._runs: dict[Place, _Run] = {}
        self._lock = threading.Lock()

    async def run(self, place: Place, input_hash: str, work: Callable[[], Awaitable[R]], *, conflict: R, lost: R) -> R:
        """Do the work, or wait for the one who does.

        `conflict`: the result where that one has other input. `lost`: the result where it ended without one.
        """
        with self._lock:
            known = self._runs.get(place)
            mine = _Run(input_hash)
            if known is None:
                self._runs[place] = mine
        if known is not None:
            if known.input_hash != input_hash:
                return conflict
            found: R | None = await asyncio.shield(asyncio.wrap_future(known.end))
            return lost if found is None else found
        result: R | None = None
        try:
            result = await work()
            return result
        finally:
            with self._lock:
                del self._runs[place]
            mine.end.set_result(result)
