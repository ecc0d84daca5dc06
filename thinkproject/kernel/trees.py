"""Folders of the disk, however deep: removed and measured folder by folder, without recursion and long paths.

A program can make folders that lie deeper than a path may be long and than Python recurses. So each folder is opened
from the one above it, without following a link, and the way back is `..`, which has to lead to the folder that it was.
Only one folder is open at a time.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PLACE: Final = getattr(os, "O_PATH", 0)
"""Opens what may not be read, where the system can do so."""
BLOCK: Final = 512
TRIES: Final = 5


class FolderMoved(OSError):
    """A folder was put elsewhere while it was looked through."""


def remove_tree(path: str | Path, *, dir_fd: int | None = None) -> None:
    """Remove a folder with all below it, whatever its permissions are. Links are removed and not followed.

    `dir_fd`: the open folder from which the path leads. Errors: `OSError`, the first of all, once everything else has
    been removed. A folder that is not there is no error.
    """
    failures: list[OSError] = []
    with _noting(failures):
        with contextlib.closing(_Way(path, dir_fd, needs=stat.S_IRWXU)) as way:
            waiting = [_emptied(way.handle, failures)]
            while waiting:
                if waiting[-1]:
                    with _noting(failures):
                        way.enter(waiting[-1].pop())
                        waiting.append(_emptied(way.handle, failures))
                    continue
                waiting.pop()
                if waiting:
                    name = way.leave()
                    with _noting(failures):
                        os.rmdir(name, dir_fd=way.handle)
        os.rmdir(path, dir_fd=dir_fd)
    if failures:
        raise failures[0]


def tree_size(path: str | Path, *, most_entries: int) -> tuple[int, int]:
    """Bytes and number of what is in a folder that is being written to. Looks at few more than `most_entries`.

    More than that are also folders that are moved again and again while they are looked through.
    """
    for _ in range(TRIES):
        with contextlib.suppress(FolderMoved):
            return _measured(path, most_entries)
    return 0, most_entries + 1


def _measured(path: str | Path, most_entries: int) -> tuple[int, int]:
    size = count = 0
    with contextlib.closing(_Way(path, None, needs=stat.S_IRUSR | stat.S_IXUSR)) as way:
        waiting: list[list[str]] = []
        while count <= most_entries:
            if way.depth == len(waiting):
                waiting.append([])
                for each in _entries(way.handle):
                    count += 1
                    with contextlib.suppress(OSError):  # it has just gone
                        size += each.stat(follow_symlinks=False).st_blocks * BLOCK
                        waiting[-1] += [each.name] if each.is_dir(follow_symlinks=False) else []
            if waiting[-1]:
                with contextlib.suppress(OSError):
                    way.enter(waiting[-1].pop())
            elif way.depth:
                waiting.pop()
                way.leave()
            else:
                break
    return size, count


class _Way:
    """The way from a folder down to the one that is open. `needs`: permissions that its owner gets in each."""

    def __init__(self, path: str | Path, dir_fd: int | None, *, needs: int) -> None:
        self._needs = needs
        self.handle = _opened(path, dir_fd, needs)
        self._above: list[tuple[str, os.stat_result]] = []

    @property
    def depth(self) -> int:
        """The number of folders above, 0 for the first."""
        return len(self._above)

    def enter(self, name: str) -> None:
        """Go to a folder in this one. Errors: `OSError`, and it stays where it is."""
        here = os.fstat(self.handle)
        self._become(_opened(name, self.handle, self._needs))
        self._above.append((name, here))

    def leave(self) -> str:
        """Go to the folder above, and say the name of the one that was left. Errors: `FolderMoved`."""
        name, above = self._above.pop()
        self._become(os.open("..", FOLDER, dir_fd=self.handle))
        if not os.path.samestat(os.fstat(self.handle), above):
            raise FolderMoved("a folder was moved while it was looked through")
        return name

    def close(self) -> None:
        """Close the folder that is open."""
        os.close(self.handle)

    def _become(self, handle: int) -> None:
        os.close(self.handle)
        self.handle = handle


@contextlib.contextmanager
def _noting(failures: list[OSError]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        return  # it has just gone
    except FolderMoved:
        raise
    except OSError as error:
        failures.append(error)


def _entries(handle: int) -> list["os.DirEntry[str]"]:
    with os.scandir(handle) as found:
        return list(found)


def _emptied(handle: int, failures: list[OSError]) -> list[str]:
    """Remove from an open folder all but the folders in it, and name these."""
    folders = []
    for each in _entries(handle):
        with _noting(failures):
            if each.is_dir(follow_symlinks=False):
                folders.append(each.name)
            else:
                os.unlink(each.name, dir_fd=handle)
    return folders


def _opened(path: str | Path, dir_fd: int | None, needs: int) -> int:
    try:
        handle = os.open(path, FOLDER, dir_fd=dir_fd)
    except PermissionError:
        place = os.open(path, FOLDER | PLACE, dir_fd=dir_fd)  # where there is no such way: the same error
        try:
            os.chmod(f"/proc/self/fd/{place}", needs)
            return os.open(f"/proc/self/fd/{place}", FOLDER & ~os.O_NOFOLLOW)
        finally:
            os.close(place)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & needs != needs:
        with contextlib.suppress(OSError):  # another's: what may be done is found out by doing it
            os.fchmod(handle, mode | needs)
    return handle
