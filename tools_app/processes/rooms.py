"""The place of a command's files: a file system of its own with a bound of the kernel's, where one can be had.

A command in namespaces has one in memory (tmpfs). Its first process makes it in namespaces that are the command's
already, prints that it is there, and waits; this process opens it by the way of that process, puts the files in, and
lets it go on. No other process of the machine sees it, and it is gone with the last who has it open. So files that were
unlinked, and paths longer than the system takes, count like all others, and nothing has to be removed.

Elsewhere, as in containers, the files lie on the machine's disk, and the worker measures them again and again: what
directories name, and what only processes hold. A file that is on its way through a socket, in no process at all, is not
seen there.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from thinkproject.kernel.trees import tree_size
from tools_app.processes.isolation import FILE_SPARE_BYTES, MAX_ENTRIES, CommandBounds
from tools_app.processes.memory import unnamed_files

ROOM: Final = "room"
FOLDER: Final = "folder"
MAKE: Final = """
if mount -t tmpfs -o "$2" "$3" "$1" 2> /dev/null; then echo room; else echo folder; fi
read -r answer || exit 125
[ "$answer" = room ] || umount "$1" 2> /dev/null
shift 3
exec "$@" < /dev/null
"""
SPARE_ENTRIES: Final = 1_000
OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def making_room(folder: Path, bounds: CommandBounds, *, owner: int) -> list[str]:
    """The words of a program that makes it and then becomes the one whose words come after.

    It bears the name of the command's directory, by which processes are found that outlived their worker
    (`folders.sweep`). `owner`: as the namespace counts users.
    """
    size, entries = bounds.disk_bytes + FILE_SPARE_BYTES, MAX_ENTRIES + SPARE_ENTRIES
    options = f"size={size},nr_inodes={entries},mode=700,uid={owner},gid={owner},nosuid,nodev"
    return ["/bin/sh", "-c", MAKE, "room", str(folder), options, folder.parent.name]


@dataclass(slots=True)
class Room:
    """The files of one command. `path`: leads there as long as it is not closed."""

    folder: Path
    path: Path = field(init=False)
    _handle: int = -1

    def __post_init__(self) -> None:
        self.path = self.folder

    def enter(self, pid: int) -> bool:
        """Take the file system that this process has in place of the folder. False where it cannot be reached."""
        with contextlib.suppress(OSError):
            handle = os.open(f"/proc/{pid}/root{self.folder}", OPEN)
            if os.fstat(handle).st_dev == self.folder.stat().st_dev:
                os.close(handle)
                return False
            self._handle, self.path = handle, Path(f"/proc/self/fd/{handle}")
        return self.is_bounded

    @property
    def is_bounded(self) -> bool:
        """Whether the kernel bounds it."""
        return self._handle >= 0

    def use(self, process: Callable[[], int]) -> tuple[int, int]:
        """Bytes and number of what is in it. `process`: names the one that holds files, with all below it; 0 for none.

        Of one that is bounded this takes no time; else milliseconds for thousands of files.
        """
        if self.is_bounded:
            found = os.fstatvfs(self._handle)
            return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree
        size, count = tree_size(self.folder, most_entries=MAX_ENTRIES)
        return size + unnamed_files(process(), self.folder.stat().st_dev), count

    def close(self) -> None:
        """Let it go. Safe to call again."""
        if self.is_bounded:
            os.close(self._handle)
            self._handle = -1
