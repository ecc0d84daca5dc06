"""The number of web and worker processes that `make run` starts. Standard library only.

As many of each as there are cores, since one interpreter uses one core, but no more than memory allows: Redis, the
database, a local model and the person's own programs need some as well.
"""

import os
from dataclasses import dataclass
from pathlib import Path

WEB_BYTES = 160 * 1024 * 1024
WORKER_BYTES = 220 * 1024 * 1024
"""What a process takes at a hundred running turns (`docs/benchmarks.md`, "memory at most"); at rest less."""
SHARE = 0.5
"""How much of the available memory the further processes may take; the first of each kind is always there."""

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Cores and memory. Memory that is unknown (`None`) is no limit."""

    cores: int
    memory_bytes: int | None


def process_count(wanted: int, machine: Machine) -> int:
    """The number of processes of one kind. `wanted` 0 is automatic."""
    if wanted > 0:
        return wanted
    count = machine.cores
    if machine.memory_bytes is not None:
        further = int(machine.memory_bytes * SHARE / (WEB_BYTES + WORKER_BYTES))
        count = min(count, 1 + further)
    return max(1, count)


def core_count(cgroup: Path = _CGROUP) -> int:
    """Cores that this process may use, within the quota of its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    words = _words(cgroup / "cpu.max")
    if len(words) == 2 and words[0].isdigit():
        return max(1, min(cores, int(words[0]) // max(1, int(words[1]))))
    return cores


def available_memory(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Bytes of memory that programs could still take, within the limit of the container; `None` if it is unknown."""
    found = []
    words = _words(meminfo)
    if "MemAvailable:" in words:
        found.append(int(words[words.index("MemAvailable:") + 1]) * 1024)
    limit, used = _words(cgroup / "memory.max"), _words(cgroup / "memory.current")
    if limit and limit[0].isdigit() and used:
        found.append(max(0, int(limit[0]) - int(used[0])))
    return min(found, default=None)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []
