"""Chunks of an answer as rows of a developer's own table: one row each, numbered from 0 without a gap.

    result = await durable_chat(
        handle, "Search for recent orders.", chunks=lambda stream: stream_to_collection(stream, Piece, ...)
    )
    result.content  # the text of the answer

The rules are those of the product's own log (`chat/streams/writing`): a row is committed before the next chunks are
taken, none is changed, and of two writers of one stream the later one ends with an error.
"""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, router, transaction
from django.db.models import Max, Model

from chat.core.wire.ag_ui import row_kind
from chat.core.wire.chunks import Chunk
from chat.errors import StreamTaken
from chat.instance.handle import AgentHandle, ChatResult
from sessions_app.core.messages.shapes import NewMessage
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load

__all__ = ["StoredChunks", "durable_chat", "row_kind", "stream_to_collection"]

BATCH: Final = 32
BATCH_SECONDS: Final = 0.05
"""Chunks wait so long, or until there are so many, and are then one INSERT."""

Transform = Callable[[Chunk, int, Any], Model]
"""Gets a chunk, its number and the id of the stream; returns the row, which is not saved yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunks:
    """The outcome of storing. `content`: the text of the whole answer, that of chunks which were left out, too."""

    content: str
    count: int


async def stream_to_collection(  # noqa: PLR0913 - one keyword for each thing its caller decides
    chunks: AsyncIterable[Chunk],
    model: type[Model],
    *,
    stream_id: Any,
    transform: Transform,
    keep: Callable[[Chunk], bool] = lambda _chunk: True,
    stream_field: str = "generation_id",
    index_field: str = "index",
) -> StoredChunks:
    """Store the chunks of a stream as they come, and give its text at the end.

    **Shape:** `transform` makes the row of a chunk; `stream_field` and `index_field` name the columns of the stream
    and of the number, which need a unique constraint together. What `keep` leaves out takes no number. A stream that
    has rows already goes on behind them. **Units:** a batch is 32 chunks or 50 ms.
    **Durability:** the rows of a batch are committed before the next one is begun. **Errors:** `StreamTaken` where
    another writer has written to the stream meanwhile, and nothing of the batch is stored; those of the chunks, once
    what came before is stored.
    """
    rows = _Rows(model, stream_id, transform, (stream_field, index_field))
    await db(rows.read_end)
    texts: list[str] = []
    source = aiter(chunks)
    step: asyncio.Future[Chunk] | None = None
    try:
        while True:
            step = step or asyncio.ensure_future(anext(source))
            await asyncio.wait({step}, timeout=rows.seconds_left)
            if step.done():
                chunk, step = step.result(), None
                if chunk["type"] == "text-delta":
                    texts.append(chunk["delta"])
                if keep(chunk):
                    rows.add(chunk)
            if step is not None or rows.is_full:
                await db(rows.write)
    except StopAsyncIteration:
        step = None
    finally:
        if step is not None:
            step.cancel()
            await asyncio.wait({step})
        await db(rows.write)
    return StoredChunks(content="".join(texts), count=rows.count)


async def durable_chat(
    handle: AgentHandle,
    message: str | NewMessage,
    *,
    chunks: Callable[[AsyncIterator[Chunk]], Awaitable[object]] | None = None,
    **options: Any,
) -> ChatResult:
    """Have an agent answer, and its chunks stored as they come; returns when the answer is there.

    **Shape:** `chunks` takes the stream of the answer, as `stream_to_collection` with the developer's table does;
    without it no row of his is written. `options` are those of `AgentHandle.chat`: tools for this turn, a signal, the
    time to wait. Model, instructions, settings and durable tools are the agent's.
    **Durability:** that of any turn; it goes on without its caller, whose rows end then where they are. **Errors:**
    those of `AgentHandle.chat`, and of `chunks` once the turn has ended.
    """
    if chunks is None:
        return await handle.chat(message, **options)
    callback = _Arriving()
    storing = asyncio.ensure_future(chunks(callback.stream()))
    try:
        return await handle.chat(message, callback, **options)
    finally:
        callback.end()
        await storing


class _Arriving:
    """The chunks of a turn as a stream. A turn that fails is an error of `chat`, as no `on_error` stands here."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()

    def on_event(self, text: str) -> None:
        """Take a chunk."""
        self._chunks.put_nowait(load(text))

    def on_reset(self) -> None:
        """End where the log was lost: its chunks come again, and rows are not taken back."""
        self.end()

    def end(self) -> None:
        """Let the stream end."""
        self._chunks.put_nowait(None)

    async def stream(self) -> AsyncIterator[Chunk]:
        """Yield the chunks that have come, and those that come until the end."""
        while (chunk := await self._chunks.get()) is not None:
            yield chunk


class _Rows:
    """The rows of one stream that are not written yet."""

    def __init__(
        self, model: type[Model], stream_id: Any, transform: Transform, stream_and_index: tuple[str, str]
    ) -> None:
        self.count = 0
        self._model = model
        self._stream_id = stream_id
        self._transform = transform
        self._fields = stream_and_index
        self._next = 0
        self._rows: list[Model] = []
        self._began = 0.0

    @property
    def is_full(self) -> bool:
        """Whether the batch is to be written, whatever comes."""
        return len(self._rows) >= BATCH or self.seconds_left == 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the batch may wait for more; `None` where there is nothing to write."""
        return max(0.0, self._began + BATCH_SECONDS - time.monotonic()) if self._rows else None

    def read_end(self) -> None:
        """Find the number of the next row."""
        self._next = self._end()

    def add(self, chunk: Chunk) -> None:
        """Make the row of a chunk."""
        if not self._rows:
            self._began = time.monotonic()
        self._rows.append(self._transform(chunk, self._next + len(self._rows), self._stream_id))

    def write(self) -> None:
        """Write what there is. Errors: `StreamTaken`."""
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        try:
            with transaction.atomic(using=router.db_for_write(self._model)):
                if self._end() != self._next:
                    raise StreamTaken
                self._model._default_manager.bulk_create(rows)
        except IntegrityError as error:
            if self._end() == self._next:
                raise
            raise StreamTaken from error
        self._next += len(rows)
        self.count += len(rows)

    def _end(self) -> int:
        stream, index = self._fields
        found = self._model._default_manager.filter(**{stream: self._stream_id}).aggregate(last=Max(index))["last"]
        return 0 if found is None else found + 1
