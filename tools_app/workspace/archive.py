"""Workspaces as zip files, written as a stream."""

import asyncio
import re
import stat
import zipfile
from collections.abc import AsyncGenerator
from typing import IO, Final, cast

from thinkproject.kernel.zips import (
    ZipSink,
)
from tools_app.core.files.failures import failed
from tools_app.core.files.paths import below, is_within, normalise
from tools_app.core.files.workspace import (
    Entry,
    EntryKind,
    Workspace,
)
from tools_app.core.permissions.file_rules import FileDeed, check_files
from tools_app.errors import FileFailed

_SMALL_BYTES: Final = 1024 * 1024
_SPECIAL: Final = re.compile(r"[*?\[\]{}\\!]")


async def export_zip(workspace: Workspace, prefix: str = "/") -> AsyncGenerator[bytes]:
    """The files and directories below a path, named relative to it, as pieces of a zip file. Links are left out.

    Errors: `ENOENT`. What changes meanwhile is in it as it was found.
    """
    top = await workspace.stat(prefix)
    if top is None:
        raise failed("ENOENT", normalise(prefix))
    sink = ZipSink()
    archive = zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED)
    entries = [top] if top.kind is EntryKind.FILE else await _below(workspace, top.path)
    start = below(top.path) if top.kind is EntryKind.DIRECTORY else top.path[: -len(top.name)]
    for entry in entries:
        if entry.kind is EntryKind.DIRECTORY:
            archive.writestr(_info(entry, start), b"")
    files = [entry.path for entry in entries if entry.kind is EntryKind.FILE]
    await asyncio.to_thread(check_files, FileDeed.READ, files)  # an archive has all or is none
    async for entry, data in workspace.read_many(files, max_bytes=_SMALL_BYTES):
        if data is not None:
            await asyncio.to_thread(archive.writestr, _info(entry, start), data)
            yield sink.taken()
            continue
        pieces = aiter(workspace.read_stream(entry.path))
        try:
            piece = await anext(pieces, None)
        except FileFailed:  # it has just gone, or become something else
            continue
        with archive.open(_info(entry, start), "w", force_zip64=True) as file:
            while piece is not None:
                await asyncio.to_thread(file.write, piece)
                yield sink.taken()
                piece = await anext(pieces, None)
    await asyncio.to_thread(archive.close)
    yield sink.taken()


async def _below(workspace: Workspace, directory: str) -> list[Entry]:
    is_plain = not _SPECIAL.search(directory)
    entries = await workspace.glob(f"{below(directory)}**/*" if is_plain else "/**/*")
    return [entry for entry in entries if is_within(entry.path, directory) and entry.path != directory]


def _info(entry: Entry, start: str) -> zipfile.ZipInfo:
    moment = entry.modified_at.timetuple()[:6]
    info = zipfile.ZipInfo(entry.path[len(start) :], max(moment, (1980, 1, 1, 0, 0, 0)))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    if entry.kind is EntryKind.DIRECTORY:
        info.filename += "/"
        info.external_attr = ((stat.S_IFDIR | 0o755) << 16) | 0x10
    return info
