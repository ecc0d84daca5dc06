"""Directories of commands: one for each, removed at its end, or by the next process where the worker was killed."""

import contextlib
import fcntl
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thinkproject.kernel.trees import remove_tree
from tools_app.processes.copying import give
from tools_app.processes.engines import remove_containers
from tools_app.processes.groups import remove_groups
from tools_app.processes.isolation import LOCK

logger = logging.getLogger(__name__)

PREFIX: Final = "think-command-"


@contextlib.contextmanager
def command_folders() -> Iterator[tuple[Path, Path]]:
    """An empty directory for the root of a command, and one for its files. Both go at the end."""
    top = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (top / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            root, files = top / "root", top / "files"
            for folder in (root, files):
                folder.mkdir()
                give(folder)
            give(top)
            yield root, files
    finally:
        remove(top)


def sweep() -> None:
    """Remove directories whose worker is gone, and end what still runs in one. One that stays hinders no other."""
    for top in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (top / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_containers(top)
            for pid in processes_in(top):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            remove(top)
    folder = Path(tempfile.gettempdir())
    remove_groups(PREFIX, lambda name: not (folder / name).exists())


def processes_in(top: Path) -> list[int]:
    """Processes that have this directory mounted, or a file system that is named for it: only commands have."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(top.name) in (folder / "mountinfo").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def remove(top: Path) -> None:
    """Remove a directory, whatever a command has made in it. One that stays is for the next sweep, and in the log."""
    try:
        remove_tree(top)
    except OSError as error:
        extra = {"action": "command_folder_stays", "folder": str(top), "reason": error.strerror}
        logger.warning("the folder of a command could not be removed", extra=extra)
