"""The memory of processes, counted from outside: what is theirs alone, and each shared memory once.

Files of a disk that only processes hold, because no directory names them any more, are counted as shared memory is.
Where control groups bound a command, the kernel counts (`groups.py`). Elsewhere this is what there is:

- Pages of a process itself, swapped out or not. Those that a fork shares count once, where that matters.
- Shared memory without a file: mapped by several, made by `memfd_create` and not mapped, or of System V. It is known by
  its inode. An open descriptor says how large it is; so does a mapping for root, also of pages that no process has
  touched since. For others a mapping counts as a whole.
- Files of program and workspace do not count: their pages go when memory is short.

System V memory that no process has attached belongs to its namespace, whose bound is set where that is made. What is on
its way through a socket, in no process at all, is not seen.
"""

import contextlib
import functools
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

KIB: Final = 1024
BLOCK: Final = 512
SYSTEM_V: Final = b"/SYSV"
FIELDS: Final = re.compile(r"^(RssAnon|VmSwap|Pss_Anon|SwapPss|Pss):\s+(\d+) kB$", re.MULTILINE)

_Inode = tuple[bool, int]
"""A shared memory: whether it is of System V, whose inodes have numbers of their own, and the number."""


@dataclass(slots=True)
class _Shared:
    """Sizes of shared memory, or of other files without a name on one file system, by inode."""

    device: int
    sizes: dict[_Inode, int] = field(default_factory=dict)
    exact: set[_Inode] = field(default_factory=set)

    def add(self, inode: _Inode, size: int, *, is_exact: bool) -> None:
        if is_exact and inode not in self.exact:
            self.exact.add(inode)
            self.sizes[inode] = size
        elif is_exact or inode not in self.exact:
            self.sizes[inode] = max(size, self.sizes.get(inode, 0))


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that are still there; none where it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    return found


def memory_of(pid: int, *, most: int = 0) -> int:
    """Memory in bytes of a process and all below it. Blocks for milliseconds, longer for many mappings.

    `most`: where a quick count, which has what forks share several times, is not above it, that is the answer.
    """
    pids = _tree(pid)
    total = _unnamed(pids, _device())
    quick = total + sum(_own(each) for each in pids)
    return quick if quick <= most else total + sum(_own_exactly(each) for each in pids)


def unnamed_files(pid: int, device: int) -> int:
    """Bytes of the files that a process and all below it hold on a file system, and that no directory names."""
    return _unnamed(_tree(pid), device)


def _tree(pid: int) -> list[int]:
    pids = [pid] if pid else []
    for each in pids:
        pids += children_of(each)
    return pids


def _unnamed(pids: list[int], device: int) -> int:
    shared = _Shared(device)
    for each in pids:
        _add_open(each, shared)
        _add_mapped(each, shared)
    return sum(shared.sizes.values())


def _own(pid: int) -> int:
    """Memory of a process itself, which every user may read."""
    return _sum(f"/proc/{pid}/status", "RssAnon", "VmSwap") or 0


def _own_exactly(pid: int) -> int:
    """The same without the share of other processes. One that does not let itself be looked into counts whole."""
    found = _sum(f"/proc/{pid}/smaps_rollup", "Pss_Anon", "SwapPss")
    return _own(pid) if found is None else found


def _sum(path: str, *names: str) -> int | None:
    try:
        found = dict(FIELDS.findall(Path(path).read_text()))
    except OSError:  # it may just have ended
        return None
    return sum(int(found[name]) * KIB for name in names if name in found) if names[0] in found else None


def _add_open(pid: int, shared: _Shared) -> None:
    """Add those to which a process has a descriptor."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as opened:
        for each in opened:
            with contextlib.suppress(OSError):
                state = each.stat()
                is_unnamed = stat.S_ISREG(state.st_mode) and not state.st_nlink
                if is_unnamed and state.st_dev == shared.device:
                    shared.add((False, state.st_ino), state.st_blocks * BLOCK, is_exact=True)


def _add_mapped(pid: int, shared: _Shared) -> None:
    """Add those that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return
    for start, end, offset, number, name in _mapping(shared.device).findall(maps):
        inode = (name.startswith(SYSTEM_V), int(number))
        if inode in shared.exact:
            continue
        try:
            place = f"/proc/{pid}/map_files/{int(start, 16):x}-{int(end, 16):x}"
            shared.add(inode, os.stat(place).st_blocks * BLOCK, is_exact=True)
        except OSError:
            shared.add(inode, int(end, 16) - int(start, 16) + int(offset, 16), is_exact=False)


@functools.cache
def _device() -> int:
    """The file system of shared memory without a file; the kernel has one."""
    made = os.memfd_create("think")
    try:
        return os.fstat(made).st_dev
    finally:
        os.close(made)


@functools.cache
def _mapping(device: int) -> re.Pattern[bytes]:
    """Lines of `/proc/<pid>/maps` about files without a name on a file system."""
    name = f"{os.major(device):02x}:{os.minor(device):02x}".encode()
    words = rb"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) " + name + rb" (\d+) *(.* \(deleted\))$"
    return re.compile(words, re.MULTILINE)
