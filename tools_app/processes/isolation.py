"""Ways to run a command apart from this machine: what they have in common.

All of them: another user, no privilege and no way to one, processes of its own that end with the first, no network
unless granted, programs read-only, no other file of this machine, an empty environment. Where this process is root,
the command runs as the user 65534. `namespaces.py` and `engines.py` have the ways.
"""

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

NOBODY: Final = 65534
LOCK: Final = "lock"
"""A file in the directory of each command, which its worker holds."""
OPEN_FILES: Final = 256
TEMPORARY_BYTES: Final = 64 * 1024 * 1024
"""Bytes of `/tmp`, of `/dev/shm` and of System V shared memory, each."""
SHARED_BYTES: Final = 3 * TEMPORARY_BYTES
"""The memory that a control group has beside the bound, since the kernel counts these with it."""
FILE_SPARE_BYTES: Final = 1 << 20
"""What a file system of a command has beyond its bound, so that a look finds that it was passed."""
MAX_ENTRIES: Final = 20_000
"""Files, directories and links of one command."""
SYSTEM_V: Final = {
    "shmall": str(TEMPORARY_BYTES // resource.getpagesize()),
    "shmmax": str(TEMPORARY_BYTES),
    "shmmni": "64",
    "msgmni": "32",
    "sem": "250 1000 100 32",
}
"""Bounds of a namespace for System V shared memory, queues and semaphores, by their names below `kernel`."""
SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
START: Final = 'cd -- "$1" || exit 1; script=$2; shift 2; eval "$script"'
ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/workspace",
    "USER": "user",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fileMode",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}
"""A workspace has no modes of files, so git does not compare them; its status changes no byte of a repository."""
TRUSTED_PATH: Final = f"{ENVIRONMENT['PATH']}:/usr/sbin:/sbin"
"""Where the programs that make the walls are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandBounds:
    """Bounds of one command. `processes`, `cpu_seconds`, `file_bytes` are the kernel's, the others the parent's.

    `cpus`: processors at a time, where a container engine can bound them.
    """

    seconds: float
    cpu_seconds: int
    memory_bytes: int
    processes: int
    disk_bytes: int
    output_bytes: int = 64_000
    cpus: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPlace:
    """The place of one command. `folder`: its files. `root`: an empty directory. `cwd`: within the files."""

    folder: Path
    root: Path
    cwd: str = "/"
    network: bool = False


class Isolation(Protocol):
    """One way. `is_supervised`: its first process ends all of the command when the pipe that is its input closes.

    Of others all processes are below the outermost one, and are killed there. `proofs`: what `/proc/self/status` has to
    say within, for the way to count.
    """

    @property
    def name(self) -> str:
        """The word in the setting."""

    @property
    def description(self) -> str:
        """The way in a few words, for the report."""

    @property
    def is_supervised(self) -> bool:
        """Whether a supervisor ends it."""

    @property
    def proofs(self) -> Mapping[str, str]:
        """Names and values of the status."""

    def prepare(self) -> str:
        """Make what it needs, if that can be done. Empty where it may be tried, otherwise why not. May block."""

    def environment(self) -> Mapping[str, str]:
        """The variables of the programs that make the walls. The command sees none of them."""

    def command_line(self, script: str, place: MountPlace, bounds: CommandBounds) -> list[str]:
        """The command line that runs a shell command."""

    def watched_process(self, pid: int, place: MountPlace) -> int:
        """The process whose memory, with all below it, counts; 0 for none. `pid`: the outermost process."""

    @property
    def has_room(self) -> bool:
        """Whether its first process makes a file system for the files (`rooms.py`) and waits until they are there."""

    def is_no_start(self, place: MountPlace, code: int) -> bool:
        """Whether the command was never started. `code`: the exit code of its outermost process."""


NO_CAPABILITY: Final = "0000000000000000"
UNPRIVILEGED: Final = {"NoNewPrivs": "1", "CapEff": NO_CAPABILITY, "CapBnd": NO_CAPABILITY, "NewNamespaces": ""}


def limits(bounds: CommandBounds, *, processes: int) -> dict[str, int]:
    """Limits of the kernel for each process, by the names of `prlimit`. `processes`: those of the command's user."""
    return {
        "core": 0,
        "nofile": _allowed(resource.RLIMIT_NOFILE, OPEN_FILES),
        "nproc": _allowed(resource.RLIMIT_NPROC, processes),
        "fsize": _allowed(resource.RLIMIT_FSIZE, bounds.disk_bytes),
        "cpu": _allowed(resource.RLIMIT_CPU, max(1, bounds.cpu_seconds)),
    }


def _allowed(kind: int, wanted: int) -> int:
    """A limit may only be lowered."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def shell() -> str:
    """The shell of this machine."""
    return "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"


def is_root() -> bool:
    """Whether the command has to become another user."""
    return os.geteuid() == 0
