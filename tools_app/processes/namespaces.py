"""Commands in namespaces that `unshare` or bubblewrap makes, with the programs of this machine."""

import functools
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools_app.processes.groups import has_groups
from tools_app.processes.isolation import (
    ENVIRONMENT,
    NOBODY,
    START,
    SYSTEM,
    SYSTEM_V,
    TEMPORARY_BYTES,
    TRUSTED_PATH,
    UNPRIVILEGED,
    CommandBounds,
    MountPlace,
    is_root,
    limits,
    shell,
)
from tools_app.processes.rooms import making_room

TRIAL_SECONDS: Final = 10.0
ROOT_SPACES: Final = ("unshare", "--ipc", "--mount")
USER_SPACES: Final = (*ROOT_SPACES, "--user", "--map-root-user")
SET_SYSTEM_V: Final = " && ".join(f"echo {value} > /proc/sys/kernel/{name}" for name, value in SYSTEM_V.items())
SETUP: Final = Path(__file__).parent / "setup.sh"
"""Given to the shell as a text: it runs as another user, who may not enter the folder of this installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """One way. `programs`: what it needs on the path."""

    name: str
    programs: tuple[str, ...]
    is_supervised: bool = False

    @property
    def description(self) -> str:
        """The way in a few words."""
        way = f"namespaces of their own, made by {self.name}"
        if has_groups():
            return f"{way}; a control group bounds the memory"
        spared = "" if _root_bounds_system_v() or _user_bounds_system_v() else ", not that of System V"
        return f"{way}; no control group, so the worker counts the memory{spared}"

    @property
    def has_room(self) -> bool:
        """Whether it can be made where this process may own files: users own theirs in namespaces of their own."""
        return bool(_system_v(self.name)) or (self.name == "unshare" and not is_root())

    @property
    def proofs(self) -> Mapping[str, str]:
        """Names and values of the command's own status."""
        return UNPRIVILEGED

    def prepare(self) -> str:
        """The programs that are not here."""
        missing = [program for program in self.programs if shutil.which(program) is None]
        if missing:
            return f"{', '.join(missing)} not found"
        _system_v(self.name)  # which is tried once
        return ""

    def environment(self) -> Mapping[str, str]:
        """The same as the command's, with the folders of the programs that make the walls."""
        return {**ENVIRONMENT, "PATH": TRUSTED_PATH}

    def command_line(self, script: str, place: MountPlace, bounds: CommandBounds) -> list[str]:
        """The command line that runs a shell command."""
        inner = [*_limited(bounds), shell(), "-c", START, "run_command", f"/workspace{place.cwd}", script]
        first = _system_v(self.name)
        room = making_room(place.folder, bounds, owner=NOBODY if is_root() else 0) if self.has_room else []
        if self.name == "bwrap":
            return [*first, *room, *_as_nobody(), *_bwrap(place), *inner]
        if first:
            return [*first, *room, *_as_nobody(), *_unshare(place, []), *inner]
        return [*_as_nobody(), *_unshare(place, room), *inner]

    def watched_process(self, pid: int, place: MountPlace) -> int:
        """The outermost: all others are below it."""
        del place
        return pid

    def is_no_start(self, place: MountPlace, code: int) -> bool:
        """Never: this looks like a command that failed, and both say why on their outputs."""
        del place, code
        return False


NAMESPACES: Final = (
    Namespaces(name="unshare", programs=("unshare", "prlimit", "setpriv", "mount", "pivot_root")),
    Namespaces(name="bwrap", programs=("bwrap", "prlimit", "setpriv")),  # where only it may make namespaces
)


def _system_v(name: str) -> list[str]:
    """Namespaces for mounts, and for shared memory with its bounds, which on older kernels root alone may set."""
    if not _root_bounds_system_v() and not (name == "bwrap" and _user_bounds_system_v()):  # which cannot set them
        return []
    spaces = ROOT_SPACES if _root_bounds_system_v() else USER_SPACES
    return [*spaces, "/bin/sh", "-c", f'{SET_SYSTEM_V} && exec "$@"', "bounds"]


@functools.cache
def _root_bounds_system_v() -> bool:
    return is_root() and _works(*ROOT_SPACES, "/bin/sh", "-c", SET_SYSTEM_V)


@functools.cache
def _user_bounds_system_v() -> bool:
    return _works(*USER_SPACES, "/bin/sh", "-c", SET_SYSTEM_V)


def _works(*words: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - words of this module
            words, capture_output=True, check=False, env={"PATH": TRUSTED_PATH}, timeout=TRIAL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _as_nobody() -> list[str]:
    """Without this the kernel counts no processes, and files that root owns are the command's own."""
    if not is_root():
        return []
    user = str(NOBODY)
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]


def _limited(bounds: CommandBounds) -> list[str]:
    kinds = limits(bounds, processes=bounds.processes)
    return ["prlimit", *(f"--{kind}={value}:{value}" for kind, value in kinds.items()), "--"]


def _bwrap(place: MountPlace) -> list[str]:
    """Its first process has no more rights than the command, which can trace it and so outlive a killed worker.

    The next worker ends it then (`folders.sweep`). The first process of `_unshare` cannot be traced.
    """
    words = [
        shutil.which("bwrap") or "bwrap",
        *("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if place.network else ("--unshare-net",)),
        *(() if _system_v("bwrap") else ("--unshare-ipc",)),
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
        names += ["resolv.conf", "hosts", "nsswitch.conf", "ssl"]
    for name in names:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]  # who owns a namespace may set its bounds
    words += ["--dev", "/dev", "--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - its own
    words += ["--size", str(TEMPORARY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - its own
    return [*words, "--bind", str(place.folder), "/workspace", "--remount-ro", "/", "--"]


def _unshare(place: MountPlace, room: Sequence[str]) -> list[str]:
    """The first `unshare` makes namespaces and the user, which clears what `setpriv` sets; the second one forks.

    So each process dies with the one above it: the kernel kills the last one when the worker is killed.
    """
    spaces = ["--user", "--map-root-user", "--mount", "--uts", *([] if place.network else ["--net"])]
    spaces += [] if _system_v("unshare") else ["--ipc"]
    network = "yes" if place.network else "no"
    setup: Sequence[str] = ["/bin/sh", "-c", _setup(), "setup", str(place.root), str(place.folder), network]
    bound = ["setpriv", "--pdeathsig", "KILL"]
    return ["unshare", *spaces, *bound, *room, "unshare", "--pid", "--fork", "--kill-child", *setup]


@functools.cache
def _setup() -> str:
    return SETUP.read_text().replace("SET_SYSTEM_V", SET_SYSTEM_V)
