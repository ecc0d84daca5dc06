"""Folders and archives (zip, tar, tar.gz) as files of a workspace, read with distrust.

What is imported may come from anywhere. Nothing of it is written before all of it was read once: names, sizes as they
really are, checksums. Its size, number and ratio have limits, none of its names is more than a path below the target,
no link in it leads out of the target, and nothing is written through one.
"""

import asyncio
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Final, cast

from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.zips import (
    MAX_RATIO,
    RATIO_FREE_BYTES,
    ZipRefused,
    bad_name,
    check_entry,
    check_name,
    damaged,
    is_too_large,
    open_zip,
    too_large,
    too_many,
)
from tools_app.core.files.media_types import sniff, sniff_head
from tools_app.core.files.paths import below, chain, is_within, name_of, normalise, parent_of
from tools_app.core.files.workspace import FileChange, Link, MakeDirectory, Operation, Put, Workspace
from tools_app.errors import ArchiveInvalid, FileFailed
from tools_app.workspace.conf import workspace_settings
from tools_app.workspace.stores.tree import PIECE_BYTES, StoredContent
from tools_app.workspace.stores.writes import Writes

ARCHIVE_ENTRIES: Final = 20_000
ARCHIVE_BYTES: Final = 512 * 1024 * 1024
"""Of all files of an import, uncompressed."""
_HEAD_BYTES: Final = 64 * 1024
_MEMORY_BYTES: Final = 8 * 1024 * 1024
_HEADER_BYTES: Final = 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
_TAR_MAGIC: Final = slice(257, 262)
_BROKEN: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
)


@dataclass(slots=True)
class Incoming:
    """All that is to be written, by path. `left_out`: names with the reason, of a folder alone."""

    directories: list[str] = field(default_factory=list)
    files: list[tuple[str, StoredContent]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


async def import_archive(workspace: Workspace, file: IO[bytes], target: str = "/") -> list[FileChange]:
    """Write the files of a zip, tar or tar.gz file below a directory: all, or none where the store has transactions.

    `file`: can seek, and stays open. Files that are there are replaced. Links of a zip file are refused, those of a tar
    file are links where they lead to something below the target. Errors: `ArchiveInvalid`; those of `apply`.
    """
    async with _read(file, normalise(target)) as found:
        return await _written(workspace, found)


async def import_folder(workspace: Workspace, folder: Path, target: str = "/") -> tuple[list[FileChange], list[str]]:
    """Write a folder of this machine below a directory, hidden files and `.git` included, byte for byte.

    Returns the changes, and what was left out with the reason: links that lead out of the folder, devices, names that a
    workspace cannot have, files that are too large for it. Errors: `ArchiveInvalid` where it is too large in all or no
    folder; those of `apply`.
    """
    found = await asyncio.to_thread(_collected, folder, normalise(target))
    return await _written(workspace, found), found.left_out


async def _written(workspace: Workspace, found: Incoming) -> list[FileChange]:
    if isinstance(workspace, Writes):  # reads the contents again while it stores them
        return await workspace.write_contents(found.files, directories=found.directories, links=found.links)
    operations: list[Operation] = [MakeDirectory(path=path) for path in found.directories]
    for path, content in found.files:
        operations.append(Put(path=path, content=await asyncio.to_thread(_bytes_of, content)))
    operations += [Link(path=path, target=target) for path, target in found.links]
    return await workspace.apply(operations)


@asynccontextmanager
async def _read(file: IO[bytes], target: str) -> AsyncGenerator[Incoming]:
    head = await asyncio.to_thread(_head_of, file)
    if not head.startswith(_GZIP) and head[_TAR_MAGIC] != b"ustar":
        archive = await asyncio.to_thread(_opened_zip, file)
        yield await asyncio.to_thread(_checked_zip, archive, target)
        return
    if not head.startswith(_GZIP):
        yield await asyncio.to_thread(_checked_tar, file, target)
        return
    with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spooled:
        plain = cast("IO[bytes]", spooled)
        await asyncio.to_thread(_gunzip, file, plain)
        yield await asyncio.to_thread(_checked_tar, plain, target)


def _head_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    head = file.read(512)
    file.seek(0)
    return head


# --- Zip files


@contextmanager
def _refusing() -> Iterator[None]:
    """Make a refusal of the zip file one of the archive."""
    try:
        yield
    except ZipRefused as error:
        raise ArchiveInvalid(error.phrase) from error


def _opened_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an archive. Errors: `ArchiveInvalid`, also where its list of entries is too long to be read."""
    with _refusing():
        return open_zip(file, max_entries=ARCHIVE_ENTRIES)


def _checked_zip(archive: zipfile.ZipFile, target: str) -> Incoming:
    """Read all of an archive once. Errors: `ArchiveInvalid`."""
    infos = archive.infolist()
    with _refusing():
        paths = [_path(check_entry(info), target) for info in infos]
    _check_once(paths)
    _check_zip_size(infos, sum(info.file_size for info in infos))
    found = Incoming()
    read = 0
    for info, path in zip(infos, paths, strict=True):
        if info.is_dir():
            found.directories.append(path)
            continue
        content = _measured(partial(archive.open, info), path, ARCHIVE_BYTES - read)
        read += content.size
        _check_zip_size(infos, read)
        found.files.append((path, content))
    return found


def _check_zip_size(infos: Sequence[zipfile.ZipInfo], size: int) -> None:
    if is_too_large(infos, size, max_bytes=ARCHIVE_BYTES):
        raise _too_large()


# --- Tar files


class _Listing:
    """A tar file whose headers are being read: one that would fill the memory is refused."""

    def __init__(self, file: IO[bytes]) -> None:
        self.is_listed = False
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not self.is_listed and not 0 <= size <= _HEADER_BYTES:
            raise tarfile.ReadError
        return self._file.read(size)


def _gunzip(file: IO[bytes], plain: IO[bytes]) -> None:
    """Unpack a gzip file. Errors: `ArchiveInvalid` for damage and bombs."""
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    most = min(ARCHIVE_BYTES + ARCHIVE_ENTRIES * 1024, max(RATIO_FREE_BYTES, packed * MAX_RATIO))
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    size = 0
    try:
        while not unpacker.eof:
            piece = unpacker.unconsumed_tail or file.read(PIECE_BYTES)
            made = unpacker.decompress(piece, PIECE_BYTES)
            size += plain.write(made)
            if size > most:
                raise _too_large()
            if not piece and not made:
                raise _damaged()
    except zlib.error as error:
        raise _damaged() from error


def _checked_tar(file: IO[bytes], target: str) -> Incoming:
    """Read all of a tar file once. Errors: `ArchiveInvalid`."""
    file.seek(0)
    listing = _Listing(file)
    found, members = Incoming(), []
    try:
        archive = tarfile.TarFile(fileobj=cast("IO[bytes]", listing))
        for member in archive:
            members.append(member)
            if len(members) > ARCHIVE_ENTRIES:
                raise ArchiveInvalid(too_many(ARCHIVE_ENTRIES).phrase)
    except (tarfile.TarError, ValueError, OSError, EOFError) as error:
        raise _damaged() from error
    if not members:
        raise _damaged()
    listing.is_listed = True
    read = 0
    for member in members:
        name = member.name.rstrip("/")
        if member.isdir() and name in {"", "."}:  # the folder that was packed
            continue
        with _refusing():
            path = _path(check_name(name), target)
        if member.isdir():
            found.directories.append(path)
        elif member.issym():
            found.links.append((path, _checked_link(path, member.linkname, target)))
        elif member.isreg() and member.sparse is None:
            content = _measured(partial(_member, archive, member), path, ARCHIVE_BYTES - read)
            read += content.size
            found.files.append((path, content))
        else:
            raise ArchiveInvalid(Phrase("The archive has a device or a hard link: {name}", name=repr(name)[:300]))
    _check_once([*found.directories, *(path for path, _ in found.files), *(path for path, _ in found.links)])
    _check_not_through(found)
    return found


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    opened = archive.extractfile(member)
    assert opened is not None  # it is a file
    return opened


def _checked_link(path: str, link: str, target: str) -> str:
    """The target of a link. Errors: `ArchiveInvalid` where it leads out."""
    if not leads_within(path, link, target):
        raise ArchiveInvalid(Phrase("The archive has a link that leads out of it: {name}", name=repr(path)[:300]))
    return link


def leads_within(path: str, link: str, top: str) -> bool:
    """Whether a relative link at a path stays at or below a directory, by its words alone."""
    if not link or link.startswith("/"):
        return False
    place = [each for each in parent_of(path).split("/") if each]
    least = len([each for each in top.split("/") if each])
    for word in link.split("/"):
        if word == "..":
            if len(place) <= least:
                return False
            place.pop()
        elif word not in {"", "."}:
            place.append(word)
    return True


def _check_not_through(found: Incoming) -> None:
    links = {path for path, _ in found.links}
    paths = [*found.directories, *(path for path, _ in found.files), *links]
    if any(above in links for path in paths for above in chain(parent_of(path))):
        raise ArchiveInvalid("The archive has a file below a link.")


# --- Folders


def _collected(folder: Path, target: str) -> Incoming:
    """Look at all of a folder; links are not followed. Errors: `ArchiveInvalid`."""
    if not folder.is_dir():
        raise ArchiveInvalid(Phrase("{name} is no folder.", name=repr(folder.name)[:300]))
    found = Incoming()
    size = count = 0
    for top, names, files in os.walk(folder):
        links = [name for name in names if os.path.islink(os.path.join(top, name))]
        for name in sorted([*names, *files]):
            count += 1
            if count > ARCHIVE_ENTRIES:
                raise ArchiveInvalid(Phrase("A folder may have {limit} entries.", limit=ARCHIVE_ENTRIES))
            size += _take(found, Path(top, name), folder, target)
            if size > ARCHIVE_BYTES:
                limit = ARCHIVE_BYTES // (1024 * 1024)
                raise ArchiveInvalid(Phrase("The folder has more than {limit} MiB.", limit=limit))
        names[:] = sorted(set(names) - set(links))
    return found


def _take(found: Incoming, place: Path, folder: Path, target: str) -> int:
    """Take an entry of a folder in, or name it among those that are left out. Returns its bytes."""
    name = place.relative_to(folder).as_posix()
    mode = place.lstat().st_mode
    try:
        path = normalise(below(target) + name)
        if not path.endswith(name):
            raise bad_name(name)
        if stat.S_ISDIR(mode):
            found.directories.append(path)
        elif stat.S_ISLNK(mode):
            link = os.readlink(place)
            if not leads_within(path, link, target):
                raise ArchiveInvalid("it leads out of the folder")
            found.links.append((path, link))
        elif stat.S_ISREG(mode):
            found.files.append((path, _measured(partial(_opened_file, place), path, ARCHIVE_BYTES)))
            return found.files[-1][1].size
        else:
            raise ArchiveInvalid("it is no file, folder or link")
    except (FileFailed, ArchiveInvalid, ZipRefused, OSError) as error:
        found.left_out.append(f"{name.encode(errors='backslashreplace').decode()}: {error}")
    return 0


def _opened_file(place: Path) -> IO[bytes]:
    return os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb")


# --- All of them


def _path(name: str, target: str) -> str:
    """The path of an entry in the workspace. Errors: `ZipRefused` for a name that means anything else."""
    try:
        path = normalise(below(target) + name)
    except FileFailed:
        path = ""
    if not path or path == target or not is_within(path, target):
        raise bad_name(name)
    return path


def _check_once(paths: Sequence[str]) -> None:
    if len(set(paths)) != len(paths):
        raise ArchiveInvalid("The archive has a name twice.")


def _measured(source: "partial[IO[bytes]]", path: str, room: int) -> StoredContent:
    """Read a file once, for its true size and its type. Errors: `ArchiveInvalid` where it is damaged or too large."""
    head, size = b"", 0
    try:
        with source() as file:
            while piece := file.read(PIECE_BYTES):
                head = head or piece[:_HEAD_BYTES]
                size += len(piece)
                if size > min(room, workspace_settings.file_max_bytes):
                    raise _too_large()
    except _BROKEN as error:
        raise _damaged() from error
    media_type = (sniff if size == len(head) else sniff_head)(head, name_of(path))
    return StoredContent(size=size, media_type=media_type, source=source)


def _bytes_of(content: StoredContent) -> bytes:
    with content.open() as file:
        return file.read()


def _damaged() -> ArchiveInvalid:
    return ArchiveInvalid(damaged().phrase)


def _too_large() -> ArchiveInvalid:
    return ArchiveInvalid(too_large(ARCHIVE_BYTES).phrase)
