"""Functions that pack and unpack: zip files of directories, gzip of single files.

What is unpacked is limited as any import is: a zip file by the settings of archives, a gzip file by the size that a
file of a workspace may have.
"""

import asyncio
import contextlib
import tempfile
import zlib
from collections.abc import AsyncGenerator
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.code_tool.state.arguments import shown_entry, text
from tools_app.code_tool.state.files import MAX_FILES, Function
from tools_app.core.files.workspace import Workspace
from tools_app.errors import CodeInvalid
from tools_app.workspace.archive import export_zip
from tools_app.workspace.unpacking import import_archive

GZIP: Final = 16 + zlib.MAX_WBITS
SUFFIX: Final = ".gz"
_PIECE_BYTES: Final = 256 * 1024
_MEMORY_BYTES: Final = 1024 * 1024


async def archive(files: Workspace, value: JSONObject) -> JSONValue:
    """Write a zip file of a file, or of all below a directory. Links are left out."""
    source, target = text(value, "path"), text(value, "target")
    async with contextlib.aclosing(export_zip(files, source)) as pieces:
        return shown_entry(await files.write_stream(target, pieces, media_type="application/zip"))


async def unarchive(files: Workspace, value: JSONObject) -> JSONValue:
    """Write what is in a zip file below a directory: all or none. Files that are there are replaced."""
    with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as file:
        async for piece in files.read_stream(text(value, "path")):
            await asyncio.to_thread(file.write, piece)
        changes = await import_archive(files, file, text(value, "target"))
    return {"count": len(changes), "paths": [change.path for change in changes[:MAX_FILES]]}


async def compress(files: Workspace, value: JSONObject) -> JSONValue:
    """Write a file as gzip beside it, or elsewhere."""
    path = text(value, "path")
    async with contextlib.aclosing(_compressed(files, path)) as pieces:
        made = await files.write_stream(text(value, "target", path + SUFFIX), pieces, media_type="application/gzip")
    return shown_entry(made)


async def decompress(files: Workspace, value: JSONObject) -> JSONValue:
    """Write what is in a gzip file, under its name without `.gz` or elsewhere. Errors: `CodeInvalid`, `EFBIG`."""
    path = text(value, "path")
    target = text(value, "target", path.removesuffix(SUFFIX))
    if target == path:
        raise CodeInvalid(f"{path!r} does not end in {SUFFIX}: name a 'target'.")
    async with contextlib.aclosing(_decompressed(files, path)) as pieces:
        return shown_entry(await files.write_stream(target, pieces))


async def _compressed(files: Workspace, path: str) -> AsyncGenerator[bytes]:
    packer = zlib.compressobj(wbits=GZIP)  # without a time: the same file gives the same bytes
    async for piece in files.read_stream(path):
        yield await asyncio.to_thread(packer.compress, piece)
    yield packer.flush()


async def _decompressed(files: Workspace, path: str) -> AsyncGenerator[bytes]:
    """The bytes in a gzip file, some at a time, so that its reader can refuse what becomes too large."""
    unpacker: Any = zlib.decompressobj(wbits=GZIP)
    async for piece in files.read_stream(path):
        waiting, is_full = piece, False
        while waiting or is_full:
            if unpacker.eof:  # one gzip file may follow another
                unpacker = zlib.decompressobj(wbits=GZIP)
            try:
                made = await asyncio.to_thread(unpacker.decompress, waiting, _PIECE_BYTES)
            except zlib.error as error:
                raise _damaged(path) from error
            waiting = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            is_full = len(made) == _PIECE_BYTES and not unpacker.eof  # there may be more of what it has taken in
            yield made
    if not unpacker.eof:
        raise _damaged(path)


def _damaged(path: str) -> CodeInvalid:
    return CodeInvalid(f"{path} is no gzip file, or a damaged one.")


ARCHIVE_FUNCTIONS: Final[dict[str, Function]] = {
    "archive": archive,
    "unarchive": unarchive,
    "compress": compress,
    "decompress": decompress,
}
