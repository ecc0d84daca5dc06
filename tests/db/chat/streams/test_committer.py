"""Commits by time: writers of one loop share transactions, and none of them suffers from another."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest
from django.db import OperationalError, transaction

from chat.streams.logs import database_log
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.writing import committer
from fibers.errors import LeaseLost
from tests.db.chat.streams.support import eventually, make_writer, part, records
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id

pytestmark = pytest.mark.django_db(transaction=True)


class Fence:
    """A lease's transaction, which may refuse."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with transaction.atomic():
            if self.error is not None:
                raise self.error
            yield


async def begin(stack: AsyncExitStack, fences: list[Fence]) -> list[str]:
    """A writer for each of these leases, with one chunk; returns the streams."""
    log = MemoryLog()
    streams = sorted(new_id("trn") for _ in fences)
    for stream, fence in zip(streams, fences, strict=True):
        out = make_writer(stream, log, ctx_fenced=fence)
        await stack.enter_async_context(out)
        out.write(part(0))
    return streams


async def until_stored(streams: list[str], wanted: list[bool]) -> None:
    """Wait until these streams' chunks are in the database, and those of the others are not."""

    async def is_so() -> bool:
        found = [await db(database_log.cold_records, stream, 0, 100) == records(1) for stream in streams]
        return found == wanted

    await eventually(is_so)


async def test_writers_of_one_loop_share_a_transaction(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.3
    sizes: list[int] = []
    write_all = committer._write_all

    def counting(works: Any) -> Any:
        sizes.append(len(works))
        return write_all(works)

    monkeypatch.setattr(committer, "_write_all", counting)
    fences = [Fence() for _ in range(5)]
    async with AsyncExitStack() as stack:
        streams = await begin(stack, fences)
        await until_stored(streams, [True] * 5)
        assert sizes == [5]


async def test_a_lost_lease_costs_the_others_nothing(settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.3
    fences = [Fence(), Fence(LeaseLost()), Fence()]
    stack = AsyncExitStack()
    streams = await begin(stack, fences)
    await until_stored(streams, [True, False, True])
    with pytest.raises(LeaseLost):
        await stack.aclose()


async def test_a_writer_that_cannot_commit_does_not_hold_up_the_others(settings: Any) -> None:
    settings.THINK_STREAM_COLD_SECONDS = 0.2
    broken = Fence(OperationalError("no such table"))
    fences = [Fence(), broken, Fence()]
    async with AsyncExitStack() as stack:
        streams = await begin(stack, fences)
        await until_stored(streams, [True, False, True])
        broken.error = None
        await until_stored(streams, [True] * 3)
