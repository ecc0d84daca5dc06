"""Workspaces as zip files: written as a stream, and read with distrust.

What is imported may come from anywhere. Nothing of it is written before all of it was read once: names, sizes as they
really are, checksums. Its size, number and ratio have limits, and none of its names is more than a path below the
target.
"""

import asyncio
import re
import stat
import zipfile
import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, Final, cast

from thinkproject.kernel.zips import (
    ZipRefused,
    ZipSink,
    bad_name,
    check_entry,
    damaged,
    is_too_large,
    open_zip,
    too_large,
)
from tools_app.core.files.failures import failed
from tools_app.core.files.media_types import sniff, sniff_head
from tools_app.core.files.paths import below, is_within, name_of, normalise
from tools_app.core.files.workspace import (
    Entry,
    EntryKind,
    FileChange,
    MakeDirectory,
    Operation,
    Put,
    Workspace,
)
from tools_app.core.permissions.file_rules import FileDeed, check_files
from tools_app.errors import ArchiveInvalid, FileFailed
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.tree import PIECE_BYTES, StoredContent
from tools_app.workspace.stores.writes import Writes

ARCHIVE_ENTRIES: Final = 20_000
ARCHIVE_BYTES: Final = 512 * 1024 * 1024
"""Of all files of a zip file that is imported, uncompressed."""
_SMALL_BYTES: Final = 1024 * 1024
_HEAD_BYTES: Final = 64 * 1024
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


async def import_zip(workspace: Workspace, file: IO[bytes], target: str = "/") -> list[FileChange]:
    """Write the files of a zip file below a directory: all of them, or none where the store has transactions.

    `file`: can seek, and stays open. Files that are there are replaced. Errors: `ArchiveInvalid`; those of `apply`.
    """
    archive = await asyncio.to_thread(_opened, file)
    directories, files = await asyncio.to_thread(_checked, archive, normalise(target))
    if isinstance(workspace, Writes):  # reads the contents again while it stores them
        return await workspace.write_contents(files, directories=directories)
    operations: list[Operation] = [MakeDirectory(path=path) for path in directories]
    operations += [Put(path=path, content=await asyncio.to_thread(_read, each)) for path, each in files]
    return await workspace.apply(operations)


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


@contextmanager
def _refusing() -> Iterator[None]:
    """Make a refusal of the zip file one of the archive."""
    try:
        yield
    except ZipRefused as error:
        raise ArchiveInvalid(error.phrase) from error


def _opened(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an archive. Errors: `ArchiveInvalid`, also where its list of entries is too long to be read."""
    with _refusing():
        return open_zip(file, max_entries=ARCHIVE_ENTRIES)


def _checked(archive: zipfile.ZipFile, target: str) -> tuple[list[str], list[tuple[str, StoredContent]]]:
    """Read all of an archive once. Returns its directories and files by path. Errors: `ArchiveInvalid`."""
    infos = archive.infolist()
    paths = [_path(info, target) for info in infos]
    if len(set(paths)) != len(paths):
        raise ArchiveInvalid("The archive has a name twice.")
    _check_size(infos, sum(info.file_size for info in infos))
    directories, files = [], []
    read = 0
    for info, path in zip(infos, paths, strict=True):
        if info.is_dir():
            directories.append(path)
            continue
        head, size = _measure(archive, info, ARCHIVE_BYTES - read)
        read += size
        _check_size(infos, read)
        media_type = (sniff if size == len(head) else sniff_head)(head, name_of(path))
        source = partial(archive.open, info)
        files.append((path, StoredContent(size=size, media_type=media_type, source=source)))
    return directories, files


def _path(info: zipfile.ZipInfo, target: str) -> str:
    """The path of an entry in the workspace. Errors: `ArchiveInvalid` for a name that means anything else."""
    with _refusing():
        name = check_entry(info)
        try:
            path = normalise(below(target) + name)
        except FileFailed:
            path = ""
        if not path or path == target or not is_within(path, target):
            raise bad_name(name)
    return path


def _measure(archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: int) -> tuple[bytes, int]:
    """The beginning and the true size of a file. Errors: `ArchiveInvalid` where it is damaged or too large."""
    head, size = b"", 0
    try:
        with archive.open(info) as file:
            while piece := file.read(PIECE_BYTES):
                head = head or piece[:_HEAD_BYTES]
                size += len(piece)
                if size > min(room, workspace_settings.file_max_bytes):
                    raise _too_large()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise ArchiveInvalid(damaged().phrase) from error
    return head, size


def _check_size(infos: Sequence[zipfile.ZipInfo], size: int) -> None:
    if is_too_large(infos, size, max_bytes=ARCHIVE_BYTES):
        raise _too_large()


def _read(content: StoredContent) -> bytes:
    with content.open() as file:
        return file.read()


def _too_large() -> ArchiveInvalid:
    return ArchiveInvalid(too_large(ARCHIVE_BYTES).phrase)
