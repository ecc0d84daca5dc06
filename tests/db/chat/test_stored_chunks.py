"""Chunks of an answer in a developer's table: as they come, without a gap, and by one writer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from chat.core.wire import chunks
from chat.core.wire.ag_ui import row_kind
from chat.core.wire.chunks import Chunk
from chat.errors import StreamTaken
from chat.stored_chunks import StoredChunks, stream_to_collection
from tests.db.statements import statements
from tests.desk_calls import DeskPiece, desk_table
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _pieces(transactional_db: None) -> Iterator[None]:
    with desk_table():
        yield


def to_piece(chunk: Chunk, index: int, answer: Any) -> DeskPiece:
    return DeskPiece(answer=answer, number=index, kind=chunk["type"], text=chunk.get("delta", ""))


async def words(count: int, text: str = "w{} ") -> AsyncIterator[Chunk]:
    yield chunks.start("m1")
    for number in range(count):
        yield chunks.text_delta("t1", text.format(number))
    yield chunks.reasoning_delta("r1", "hm")


async def store(source: AsyncIterator[Chunk], answer: str = "a", **more: Any) -> StoredChunks:
    return await stream_to_collection(
        source,
        DeskPiece,
        stream_id=answer,
        transform=to_piece,
        stream_field="answer",
        index_field="number",
        **more,
    )


async def numbers(answer: str = "a") -> list[int]:
    return [each async for each in DeskPiece.objects.filter(answer=answer).values_list("number", flat=True)]


async def texts(answer: str = "a") -> str:
    rows = DeskPiece.objects.filter(answer=answer, kind="text-delta").order_by("number").values_list("text", flat=True)
    return "".join([text async for text in rows])


async def test_every_chunk_is_a_row_and_the_text_comes_back() -> None:
    with statements() as sent:
        stored = await store(words(1000))
    assert stored == StoredChunks(content="".join(f"w{number} " for number in range(1000)), count=1002)
    assert sorted(await numbers()) == list(range(1002))
    assert await texts() == stored.content
    assert sum("INSERT" in each for each in sent) <= 1002 / 8


async def test_what_is_left_out_takes_no_number_and_its_text_counts_all_the_same() -> None:
    kept: list[int] = []

    def every_other(_chunk: Chunk) -> bool:
        kept.append(len(kept))
        return kept[-1] % 2 == 0

    stored = await store(words(20), keep=every_other)
    assert (stored.count, sorted(await numbers())) == (11, list(range(11)))
    assert stored.content == "".join(f"w{number} " for number in range(20))


async def test_streams_at_the_same_time_do_not_mix() -> None:
    one, other = await asyncio.gather(store(words(50, "a"), "a"), store(words(50, "b"), "b"))
    assert (one.content, other.content) == (await texts("a"), await texts("b")) == ("a" * 50, "b" * 50)


async def test_rows_are_there_during_a_pause_of_the_stream() -> None:
    more = asyncio.Event()

    async def pausing() -> AsyncIterator[Chunk]:
        yield chunks.text_delta("t1", "early")
        await more.wait()
        yield chunks.text_delta("t1", " late")

    storing = asyncio.create_task(store(pausing()))
    async with asyncio.timeout(20):
        while await texts() != "early":  # noqa: ASYNC110 - rows publish nothing
            await asyncio.sleep(0.01)
    more.set()
    assert (await storing).content == "early late"


async def test_a_stream_that_breaks_keeps_what_came_and_goes_on_behind_it() -> None:
    async def breaking() -> AsyncIterator[Chunk]:
        yield chunks.text_delta("t1", "Half")
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await store(breaking())
    assert await texts() == "Half"
    await store(words(1, " done"))
    assert await texts() == "Half done"
    assert sorted(await numbers()) == list(range(4))


async def test_of_two_writers_of_one_stream_the_later_one_ends_with_an_error() -> None:
    first = asyncio.Event()

    async def overtaken() -> AsyncIterator[Chunk]:
        yield chunks.text_delta("t1", "one")
        while not await texts():  # noqa: ASYNC110 - rows publish nothing
            await asyncio.sleep(0.01)
        await db(DeskPiece.objects.create, answer="a", number=1, kind="text-delta", text="two")
        first.set()
        yield chunks.text_delta("t1", "three")

    with pytest.raises(StreamTaken):
        await store(overtaken())
    assert first.is_set()
    assert await texts() == "onetwo"


def test_the_kinds_of_rows_are_those_of_the_events() -> None:
    assert [row_kind(kind) for kind in ("TEXT_MESSAGE_CONTENT", "RUN_STARTED")] == ["text", "event"]
