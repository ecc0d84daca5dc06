"""The way from the async methods of a workspace to the sync tree of its store, and the listeners."""

import asyncio
import io
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Sequence
from typing import IO, TypeVar

from tools_app.core.files.failures import failed
from tools_app.core.files.media_types import sniff, sniff_head
from tools_app.core.files.paths import name_of
from tools_app.core.files.workspace import ChangeListener, FileChange
from tools_app.core.origins import Origin
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.tree import PIECE_BYTES, StoredContent, Tree

T = TypeVar("T")
_HEAD_BYTES = 64 * 1024


class Bridge(ABC):
    """One store with its listeners. Subclasses say how a piece of work gets at the tree."""

    foreign: Origin | None = None
    """The origin of files of which the store does not know any; `None`: they need no distrust."""

    def __init__(self) -> None:
        self._listeners: list[ChangeListener] = []

    @abstractmethod
    async def _reading(self, work: Callable[[Tree], T]) -> T:
        """Run work that changes nothing."""

    @abstractmethod
    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:
        """Run work as the only writer; with transactions it happens whole or not at all. `contents`: what it writes."""

    @property
    def inline_bytes(self) -> int:
        """From this size on contents are kept in a temporary file instead of memory."""
        return workspace_settings.inline_bytes

    @property
    def file_max_bytes(self) -> int:
        """The largest file."""
        return workspace_settings.file_max_bytes

    def on_change(self, listener: ChangeListener) -> Callable[[], None]:
        """Call this after every change made through this object; the returned function ends it."""
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def _notify(self, changes: Sequence[FileChange]) -> None:
        for listener in list(self._listeners) if changes else []:
            listener(changes)

    def _content(self, path: str, data: bytes, media_type: str = "") -> StoredContent:
        if len(data) > self.file_max_bytes:
            raise failed("EFBIG", path)
        return StoredContent(size=len(data), media_type=media_type or sniff(data, name_of(path)), data=data)

    async def _spooled(self, path: str, chunks: AsyncIterable[bytes], media_type: str) -> StoredContent:
        """Take in a stream: in memory while it is small, in a temporary file from then on. Errors: `EFBIG`."""
        buffer, head, size = bytearray(), b"", 0
        file: IO[bytes] | None = None
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > self.file_max_bytes:
                    raise failed("EFBIG", path)
                if len(head) < _HEAD_BYTES:
                    head += chunk[: _HEAD_BYTES - len(head)]
                buffer += chunk
                if len(buffer) >= (self.inline_bytes if file is None else PIECE_BYTES):
                    file = file or tempfile.TemporaryFile()  # noqa: SIM115 - the content closes it
                    await asyncio.to_thread(file.write, bytes(buffer))
                    buffer.clear()
            if file is None:
                return self._content(path, bytes(buffer), media_type)
            await asyncio.to_thread(file.write, bytes(buffer))
        except BaseException:
            if file is not None:
                file.close()
            raise
        return StoredContent(size=size, media_type=media_type or sniff_head(head, name_of(path)), file=file)


async def read_piece(file: IO[bytes], size: int = PIECE_BYTES) -> bytes:
    """The next bytes of a file, read off the loop unless they are in memory."""
    return file.read(size) if isinstance(file, io.BytesIO) else await asyncio.to_thread(file.read, size)


async def skip(file: IO[bytes], start: int) -> None:
    """Go on `start` bytes from the beginning; what cannot seek is read and dropped."""
    if not start:
        return
    if file.seekable():
        await asyncio.to_thread(file.seek, start)
        return
    while start and (piece := await read_piece(file, min(start, PIECE_BYTES))):
        start -= len(piece)
