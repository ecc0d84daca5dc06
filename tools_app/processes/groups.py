"""Control groups for commands in namespaces: the kernel bounds the memory of all processes of a command together.

A group is made below that of this process, or below the nearest one above it that hands the memory down (version 2), if
this process may: as root on most machines, as a user where systemd has delegated it, rarely in containers. Engines make
groups for their containers themselves. Where none can be made the worker counts (`memory.py`).
"""

import contextlib
import functools
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ENTER: Final = 'echo 0 > "$1/cgroup.procs" || exit 125; shift; exec "$@"'
END_SECONDS: Final = 2.0
NEW_SECONDS: Final = 60.0
"""A command whose directory is elsewhere may not have entered its group before that."""
MOUNT: Final = re.compile(r"^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$", re.MULTILINE)
KILLS: Final = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Group:
    """The control group of one command."""

    folder: Path

    def entering(self, words: list[str]) -> list[str]:
        """A command line that runs in this group from its first process on."""
        return ["/bin/sh", "-c", ENTER, "enter", str(self.folder), *words]

    @property
    def kills(self) -> int:
        """Processes that the kernel has ended for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                found = KILLS.search((self.folder / name).read_text())
                return int(found[1]) if found else 0
        return 0

    def remove(self) -> None:
        """Remove it, once its processes are gone. Blocks for a moment; what is left goes with the next sweep."""
        deadline = time.monotonic() + END_SECONDS
        while True:
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.02)
            else:
                return


def make_group(name: str, memory_bytes: int) -> Group | None:
    """Make a group with this much memory and no swap beside it. None where that cannot be done."""
    for place in _places():
        folder = place / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if _bounded(folder, memory_bytes) and _can_be_entered(folder):
            return Group(folder)
        with contextlib.suppress(OSError):
            folder.rmdir()
    return None


@functools.cache
def has_groups() -> bool:
    """Whether groups can be made here. Makes one, and removes it."""
    made = make_group(f"think-trial-{os.getpid()}", 1 << 28)
    if made is not None:
        made.remove()
    return made is not None


def remove_groups(prefix: str, is_left: Callable[[str], bool], *, seconds: float = NEW_SECONDS) -> None:
    """Remove the groups of commands that are gone, by their names, and older than this. One in use stays."""
    for place in _places():
        for folder in place.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):
                if is_left(folder.name) and time.time() - folder.stat().st_mtime >= seconds:
                    folder.rmdir()


def _bounded(folder: Path, memory_bytes: int) -> bool:
    """Set the bounds, in the words of either version. The files that are not there are not needed."""
    wanted = (
        ("memory.max", str(memory_bytes)),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("memory.limit_in_bytes", str(memory_bytes)),
        ("memory.memsw.limit_in_bytes", str(memory_bytes)),
    )
    try:
        for name, value in wanted:
            if (folder / name).exists():
                (folder / name).write_text(value)
    except OSError:
        return False
    return (folder / "memory.max").exists() or (folder / "memory.limit_in_bytes").exists()


def _can_be_entered(folder: Path) -> bool:
    """Whether a process of this user may move there: that may need a right in a folder above as well."""
    words = Group(folder).entering(["/bin/sh", "-c", ":"])
    return subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own words


def _places() -> Iterator[Path]:
    """Folders in which a group with a bound of memory may be made, the nearest first."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        groups = Path("/proc/self/cgroup").read_text()
    except OSError:
        return
    for root, mount, kind, options in MOUNT.findall(mounts):
        is_unified = kind == "cgroup2"
        if not is_unified and "memory" not in options.split(","):
            continue
        own = _own(groups, is_unified=is_unified)
        if own is None:
            continue
        folder = Path(mount) / os.path.relpath(own, root) if own.startswith(root) else Path(mount)
        if not is_unified:
            yield folder
            continue
        for each in (folder, *folder.parents):
            if not each.is_relative_to(mount):
                break
            with contextlib.suppress(OSError):
                if "memory" in (each / "cgroup.subtree_control").read_text().split():
                    yield each


def _own(groups: str, *, is_unified: bool) -> str | None:
    """The group of this process, from `/proc/self/cgroup`."""
    for line in groups.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" if is_unified else "memory" in controllers.split(","):
            return path
    return None
