"""The port of the hot tier. Redis and the memory of a process implement it and pass one contract suite."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from chat.streams.logs.subscription import Subscription
from chat.streams.records import Append, AppendResult, HotSlice, Opened


class StreamLog(Protocol):
    """The hot tier: Redis, or the memory of this process."""

    async def open(self, stream: str, *, fence: int, floor: int) -> Opened:
        """Take the stream for writing. `floor` is the first offset that the database does not hold.

        **Errors:** `Fenced` when a higher fence has it; `LogUnavailable`.
        """

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Append and publish for many streams in one round trip. Errors: `LogUnavailable`: unknown what arrived."""

    async def read(self, stream: str, offset: int, limit: int) -> HotSlice:
        """Return up to `limit` records from the offset on. Errors: `LogUnavailable`."""

    async def close(self, stream: str) -> None:
        """Wake the followers of a final turn and let its records expire. Errors: `LogUnavailable`."""

    def subscribe(self, stream: str, max_batches: int) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe to new records: on entering, the subscription is acknowledged, or will be repaired."""
