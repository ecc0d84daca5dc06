"""The kernel's count of processes that it has killed because memory ran out (Linux)."""

from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_MACHINE: Final = Path("/proc/vmstat")


def memory_kills() -> int | None:
    """Kills so far, in the control group of this process (version 2) or else of the whole machine; `None`: unknown."""
    own = _own_group()
    return _count(own / "memory.events") if own is not None and (own / "memory.events").exists() else _count(_MACHINE)


def _own_group() -> Path | None:
    try:
        lines = _OWN.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((_CGROUPS / line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)


def _count(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("oom_kill ")]
    return int(found[0][1]) if found and found[0][1].isdecimal() else None
