"""Files below one directory of the disk, reached component by component without following a link.

Each component is opened relative to its parent with `O_NOFOLLOW`, so whatever another process puts in the way while an
operation runs, the result is an error and never a file outside of the root. Links are data here: `planning.Plan`
follows them, within the workspace.
"""

import errno as codes
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO, Final

from thinkproject.kernel.trees import remove_tree
from tools_app.core.files.failures import failed
from tools_app.core.files.media_types import sniff_head
from tools_app.core.files.paths import MAX_DEPTH, chain, joined, name_of, normalise, parent_of
from tools_app.core.files.workspace import Entry, EntryKind
from tools_app.errors import FileFailed
from tools_app.workspace.stores.tree import PIECE_BYTES, StoredContent

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SNIFFED_BYTES: Final = 8192
_KNOWN: Final = frozenset(
    {
        "ENOENT",
        "EEXIST",
        "EISDIR",
        "ENOTDIR",
        "ENOTEMPTY",
        "ELOOP",
        "EINVAL",
        "EPERM",
        "EFBIG",
        "ENAMETOOLONG",
        "ENOSPC",
    }
)
TEMPORARY: Final = ".think-tmp-"
"""Beginning of the names of files that are being written. They are not listed; a crash may leave one."""


@contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Turn the system's errors into those of workspaces."""
    try:
        yield
    except OSError as error:
        name = codes.errorcode.get(error.errno or 0, "EIO")
        if name == "EACCES":
            name = "EPERM"
        raise failed(name if name in _KNOWN else "EIO", path) from error


@contextmanager
def directory(root: int, path: str) -> Iterator[int]:
    """Open a directory. Errors: `OSError`, also where a link is in the way."""
    handle = os.dup(root)
    try:
        for component in chain(path):
            onward = os.open(name_of(component), _DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = onward
        yield handle
    finally:
        os.close(handle)


def look(root: int, path: str) -> Entry | None:
    """The entry at a path, with the type of a file's first bytes; nothing where there is none that can be shown."""
    try:
        with directory(root, parent_of(path)) as parent:
            return entry_at(parent, path, is_sniffed=True)
    except OSError as error:
        if error.errno in {codes.ENOENT, codes.ENOTDIR, codes.ELOOP, codes.ENAMETOOLONG}:
            return None
        raise


def entry_at(parent: int, path: str, *, is_sniffed: bool = False) -> Entry | None:
    """The entry of a name in an open directory. Devices, pipes and sockets are none."""
    found = os.stat(name_of(path), dir_fd=parent, follow_symlinks=False)
    kind = _kind(found.st_mode)
    if kind is None:
        return None
    modified = datetime.fromtimestamp(found.st_mtime, tz=UTC)
    return Entry(
        path=path,
        kind=kind,
        size=0 if kind is EntryKind.DIRECTORY else found.st_size,
        media_type=_media_type(parent, path) if is_sniffed and kind is EntryKind.FILE else "",
        target=_target(parent, path) if kind is EntryKind.SYMLINK else "",
        version="" if kind is EntryKind.DIRECTORY else f"{found.st_mtime_ns:x}.{found.st_ino:x}.{found.st_size:x}",
        created_at=modified,
        modified_at=modified,
    )


def listed(parent: int, path: str) -> Entry | None:
    """Do as `entry_at` for a name that was just listed and may be gone again."""
    try:
        return entry_at(parent, path)
    except FileNotFoundError:
        return None


def names_in(handle: int, path: str) -> list[tuple[str, str]]:
    """Kind and name of what is in an open directory, sorted; without what cannot be shown."""
    found = []
    with os.scandir(handle) as entries:
        for each in entries:
            kind = _kind_of(each)
            if kind is not None and _is_shown(path, each.name):
                found.append((kind.value, each.name))
    return sorted(found)


def everything(root: int, path: str) -> list[Entry]:
    """All entries below a directory, sorted by path. Links are listed and not entered."""
    found: list[Entry] = []
    waiting = [path]
    while waiting:
        place = waiting.pop()
        if len(chain(place)) >= MAX_DEPTH:
            continue
        try:
            with directory(root, place) as handle:
                for _, name in names_in(handle, place):
                    entry = listed(handle, joined(place, name))
                    if entry is not None:
                        found.append(entry)
                        waiting += [entry.path] if entry.kind is EntryKind.DIRECTORY else []
        except (FileNotFoundError, NotADirectoryError):
            continue  # it is gone or something else by now
    return sorted(found, key=lambda entry: entry.path)


def open_file(root: int, path: str) -> IO[bytes]:
    """Open a file for reading. Errors: `OSError`, also for what is no plain file."""
    with directory(root, parent_of(path)) as parent:
        handle = os.open(name_of(path), _READ, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(codes.EINVAL, "not a plain file")
    return open(handle, "rb")


def write_file(root: int, path: str, content: StoredContent) -> Entry:
    """Write a file: whole under another name and on the disk, then in place of what is there."""
    with directory(root, parent_of(path)) as parent:
        temporary = TEMPORARY + secrets.token_hex(8)
        handle = os.open(temporary, _CREATE, _mode_of(parent, name_of(path)), dir_fd=parent)
        try:
            with open(handle, "wb") as file:
                with _source_of(content) as source:
                    shutil.copyfileobj(source, file, PIECE_BYTES)
                file.flush()
                now = _now_ns()
                os.utime(handle, ns=(now, now))
                os.fsync(handle)
            os.rename(temporary, name_of(path), src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            os.unlink(temporary, dir_fd=parent)
            raise
        os.fsync(parent)
        return replace(_made(parent, path), media_type=content.media_type)


def _source_of(content: StoredContent) -> AbstractContextManager[IO[bytes]]:
    source = content.open()
    return nullcontext(source) if source is content.file else closing(source)  # the writer closes a temporary file


def make_directory(root: int, path: str) -> Entry:
    """Make a directory in one that exists."""
    with directory(root, parent_of(path)) as parent:
        os.mkdir(name_of(path), 0o755, dir_fd=parent)
        return _made(parent, path)


def make_link(root: int, path: str, target: str) -> Entry:
    """Make a link, in place of a link or file."""
    with directory(root, parent_of(path)) as parent:
        temporary = TEMPORARY + secrets.token_hex(8)
        os.symlink(target, temporary, dir_fd=parent)
        now = _now_ns()
        os.utime(temporary, ns=(now, now), dir_fd=parent, follow_symlinks=False)
        os.rename(temporary, name_of(path), src_dir_fd=parent, dst_dir_fd=parent)
        return _made(parent, path)


def remove(root: int, entry: Entry) -> None:
    """Remove an entry with all below it, what cannot be shown too."""
    with directory(root, parent_of(entry.path)) as parent:
        if entry.kind is EntryKind.DIRECTORY:
            remove_tree(name_of(entry.path), dir_fd=parent)
        else:
            os.unlink(name_of(entry.path), dir_fd=parent)


def rename(root: int, source: str, target: str) -> None:
    """Move an entry."""
    with directory(root, parent_of(source)) as old, directory(root, parent_of(target)) as new:
        os.rename(name_of(source), name_of(target), src_dir_fd=old, dst_dir_fd=new)


def _made(parent: int, path: str) -> Entry:
    found = entry_at(parent, path)
    if found is None:
        raise FileNotFoundError(codes.ENOENT, "replaced by something else")
    return found


def _now_ns() -> int:
    """The instant with all its digits: the file system's own clock ticks too slowly to tell two writes apart."""
    return int(datetime.now(tz=UTC).timestamp() * 1_000_000) * 1000 + secrets.randbelow(1000)


def _mode_of(parent: int, name: str) -> int:
    """The permissions of the file that is replaced, so that a program stays one."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else 0o644


def _kind(mode: int) -> EntryKind | None:
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.SYMLINK if stat.S_ISLNK(mode) else None


def _kind_of(each: "os.DirEntry[str]") -> EntryKind | None:
    if each.is_symlink():
        return EntryKind.SYMLINK
    if each.is_dir(follow_symlinks=False):
        return EntryKind.DIRECTORY
    return EntryKind.FILE if each.is_file(follow_symlinks=False) else None


def _is_shown(path: str, name: str) -> bool:
    if name.startswith(TEMPORARY):
        return False
    try:
        return normalise(joined(path, name)) == joined(path, name)
    except FileFailed:
        return False


def _media_type(parent: int, path: str) -> str:
    try:
        handle = os.open(name_of(path), _READ, dir_fd=parent)
    except OSError:
        return ""  # it cannot be read, or is something else by now
    with open(handle, "rb", buffering=0) as file:
        is_plain = stat.S_ISREG(os.fstat(handle).st_mode)
        return sniff_head(file.read(_SNIFFED_BYTES) or b"", name_of(path)) if is_plain else ""


def _target(parent: int, path: str) -> str:
    return os.readlink(name_of(path), dir_fd=parent).encode(errors="replace").decode()
