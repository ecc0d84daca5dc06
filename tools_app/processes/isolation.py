"""Ways to run a command apart from this machine: what there is, and the command line of each.

All of them: a new user, no privilege and no way to one, a process namespace that ends with its first process, no
network unless granted, the system's programs read-only, no other file of this machine, an empty environment. Where
this process is root, the command runs as the user 65534.
"""

import os
import resource
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SETUP: Final = Path(__file__).parent / "setup.sh"
NOBODY: Final = 65534
OPEN_FILES: Final = 256
TEMPORARY_BYTES: Final = 64 * 1024 * 1024
SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
START: Final = 'cd -- "$1" || exit 1; script=$2; shift 2; eval "$script"'
ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/workspace",
    "USER": "user",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of one command. `processes`, `cpu_seconds`, `file_bytes` are the kernel's, the others the parent's."""

    seconds: float
    cpu_seconds: int
    memory_bytes: int
    processes: int
    disk_bytes: int
    output_bytes: int = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of one command. `folder`: its files. `root`: an empty directory. `cwd`: within the files."""

    folder: Path
    root: Path
    cwd: str = "/"
    network: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """One way. `programs`: what it needs on the path."""

    name: str
    programs: tuple[str, ...]

    def missing(self) -> list[str]:
        """The programs that are not here."""
        return [program for program in self.programs if shutil.which(program) is None]

    def command_line(self, script: str, place: Place, bounds: Bounds) -> list[str]:
        """The command line that runs a shell command."""
        inner = [*_limited(bounds), _shell(), "-c", START, "run_command", f"/workspace{place.cwd}", script]
        outer = _bwrap(place) if self.name == "bwrap" else _unshare(place)
        return [*_as_nobody(), *outer, *inner]


CANDIDATES: Final = (
    Isolation(name="unshare", programs=("unshare", "prlimit", "setpriv", "mount", "pivot_root")),
    Isolation(name="bwrap", programs=("bwrap", "prlimit", "setpriv")),  # where only it may make namespaces
)


def _shell() -> str:
    return "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"


def _as_nobody() -> list[str]:
    """Without this the kernel counts no processes, and files that root owns are the command's own."""
    if os.geteuid() != 0:
        return []
    user = str(NOBODY)
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]


def _limited(bounds: Bounds) -> list[str]:
    kinds = {
        "core": 0,
        "nofile": _allowed(resource.RLIMIT_NOFILE, OPEN_FILES),
        "nproc": _allowed(resource.RLIMIT_NPROC, bounds.processes),
        "fsize": _allowed(resource.RLIMIT_FSIZE, bounds.disk_bytes),
        "cpu": _allowed(resource.RLIMIT_CPU, max(1, bounds.cpu_seconds)),
    }
    return ["prlimit", *(f"--{kind}={value}:{value}" for kind, value in kinds.items()), "--"]


def _allowed(kind: int, wanted: int) -> int:
    """A limit may only be lowered."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _bwrap(place: Place) -> list[str]:
    """Its first process has no more rights than the command, which can trace it and so outlive a killed worker.

    The next worker ends it then (`folders.sweep`). The first process of `_unshare` cannot be traced.
    """
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
    ]
    words += ["--cap-drop", "ALL", "--ro-bind", "/usr", "/usr"]
    for name in SYSTEM:
        folder = Path("/", name)
        if folder.is_symlink():
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    names = ["ld.so.cache", "alternatives"]
    if place.network:
        words += ["--share-net"]
        names += ["resolv.conf", "hosts", "nsswitch.conf", "ssl"]
    for name in names:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - its own
    words += ["--size", str(TEMPORARY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - its own
    return [*words, "--bind", str(place.folder), "/workspace", "--remount-ro", "/", "--"]


def _unshare(place: Place) -> list[str]:
    """The first `unshare` makes namespaces and the user, which clears what `setpriv` sets; the second one forks.

    So each process dies with the one above it: the kernel kills the last one when the worker is killed.
    """
    spaces = ["--user", "--map-root-user", "--mount", "--ipc", "--uts", *([] if place.network else ["--net"])]
    network = "yes" if place.network else "no"
    setup: Sequence[str] = ["/bin/sh", str(SETUP), str(place.root), str(place.folder), network]
    return ["unshare", *spaces, "setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", *setup]
