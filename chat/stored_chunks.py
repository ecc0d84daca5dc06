"""Chunks of an answer as rows of a developer's own table: one row each, numbered from 0 without a gap.

    stored = await stream_to_collection(chunks, Piece, stream_id=row.pk, transform=to_piece)
    stored.content  # the text of the answer

The rules are those of the product's own log (`chat/streams/writing`): a row is committed before the next chunks are
taken, none is changed, and of two writers of one stream the later one ends with an error.
"""

import asyncio
import time
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, router, transaction
from django.db.models import Max, Model

from chat.core.wire.ag_ui import row_kind
from chat.core.wire.chunks import Chunk
from chat.errors import StreamTaken
from thinkproject.kernel.aio import db

__all__ = ["StoredChunks", "row_kind", "stream_to_collection"]

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
