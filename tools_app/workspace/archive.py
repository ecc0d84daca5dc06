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
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import IO, Final, cast

from thinkproject.kernel.phrases import Phrase
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
from tools_app.errors import ArchiveInvalid, FileFailed
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.tree import PIECE_BYTES, Content
from tools_app.workspace.stores.writes import Writes

MAX_RATIO: Final = 100
"""How many times its own size an archive may unpack to, once that is more than `RATIO_FREE_BYTES`."""

RATIO_FREE_BYTES: Final = 10 * 1024 * 1024
_SMALL_BYTES: Final = 1024 * 1024
_HEAD_BYTES: Final = 64 * 1024
_DIRECTORY_BYTES_PER_ENTRY: Final = 512
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LOCATOR: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
_SPECIAL: Final = re.compile(r"[*?\[\]{}\\!]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


async def export_zip(workspace: Workspace, prefix: str = "/") -> AsyncGenerator[bytes]:
    """The files and directories below a path, named relative to it, as pieces of a zip file. Links are left out.

    Errors: `ENOENT`. What changes meanwhile is in it as it was found.
    """
    top = await workspace.stat(prefix)
    if top is None:
        raise failed("ENOENT", normalise(prefix))
    sink = _Sink()
    archive = zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED)
    entries = [top] if top.kind is EntryKind.FILE else await _below(workspace, top.path)
    start = below(top.path) if top.kind is EntryKind.DIRECTORY else top.path[: -len(top.name)]
    for entry in entries:
        if entry.kind is EntryKind.DIRECTORY:
            archive.writestr(_info(entry, start), b"")
    files = [entry.path for entry in entries if entry.kind is EntryKind.FILE]
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


class _Sink:
    """The output of a zip file that is being written: it cannot seek, and is emptied by its reader."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def taken(self) -> bytes:
        found = b"".join(self._pieces)
        self._pieces.clear()
        return found


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


def _opened(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an archive. Errors: `ArchiveInvalid`, also where its list of entries is too long to be read."""
    try:
        _check_directory(file)
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise ArchiveInvalid("This is no zip file, or a damaged one.") from error


def _check_directory(file: IO[bytes]) -> None:
    """Look at the size of the list of entries before `zipfile` reads all of it into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - 65_535 - _LOCATOR_BYTES))
    tail = file.read()
    file.seek(0)
    at = len(tail) - _END_BYTES
    if not (tail[at:].startswith(_END) and tail.endswith(b"\0\0")):
        at = tail.rfind(_END)
    if at < 0:
        raise zipfile.BadZipFile
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    has_more = tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_LOCATOR)  # its own sizes would count instead
    if has_more or listed > workspace_settings.archive_max_entries * _DIRECTORY_BYTES_PER_ENTRY:
        raise _too_many()


def _checked(archive: zipfile.ZipFile, target: str) -> tuple[list[str], list[tuple[str, Content]]]:
    """Read all of an archive once. Returns its directories and files by path. Errors: `ArchiveInvalid`."""
    infos = archive.infolist()
    if len(infos) > workspace_settings.archive_max_entries:
        raise _too_many()
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
        head, size = _measure(archive, info, workspace_settings.archive_max_bytes - read)
        read += size
        _check_size(infos, read)
        media_type = (sniff if size == len(head) else sniff_head)(head, name_of(path))
        source = partial(archive.open, info)
        files.append((path, Content(size=size, media_type=media_type, source=source)))
    return directories, files


def _path(info: zipfile.ZipInfo, target: str) -> str:
    """The path of an entry in the workspace. Errors: `ArchiveInvalid` for a name that means anything else."""
    name = info.orig_filename  # `filename` ends at a NUL
    mode = stat.S_IFMT(info.external_attr >> 16)
    if mode not in {0, stat.S_IFREG, stat.S_IFDIR} or info.flag_bits & 1 or info.compress_type not in _METHODS:
        raise ArchiveInvalid(Phrase("The archive has a link, device or encrypted file: {name}", name=repr(name)[:300]))
    is_odd = not name or name.startswith("/") or "\\" in name or _DRIVE.match(name) or ".." in name.split("/")
    try:
        path = "" if is_odd else normalise(below(target) + name)
    except FileFailed:
        path = ""
    if not path or path == target or not is_within(path, target):
        raise ArchiveInvalid(Phrase("The archive has a name that is not allowed: {name}", name=repr(name)[:300]))
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
        raise ArchiveInvalid("This is no zip file, or a damaged one.") from error
    return head, size


def _check_size(infos: Sequence[zipfile.ZipInfo], size: int) -> None:
    packed = sum(info.compress_size for info in infos)
    if size > workspace_settings.archive_max_bytes or size > max(RATIO_FREE_BYTES, packed * MAX_RATIO):
        raise _too_large()


def _read(content: Content) -> bytes:
    with content.open() as file:
        return file.read()


def _too_many() -> ArchiveInvalid:
    return ArchiveInvalid(Phrase("An archive may have {limit} entries.", limit=workspace_settings.archive_max_entries))


def _too_large() -> ArchiveInvalid:
    limit = workspace_settings.archive_max_bytes // (1024 * 1024)
    return ArchiveInvalid(Phrase("The archive unpacks to more than {limit} MiB or is a bomb.", limit=limit))
