"""Settings of commands that run as real processes."""

from dataclasses import dataclass

from thinkproject.kernel.conf import MachineLimit, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Limits of commands in one process. They bound what commands cost the machine."""

    runs: int = 2
    runs_per_user: int = 1
    queue_seconds: float = 60.0  # that a command waits for its turn before its call fails
    seconds: float = 120.0
    cpu_seconds: int = 120  # of each process of a command
    cpus: float = 1.0  # in containers with control groups
    memory_bytes: int = 1024 * 1024 * 1024  # of all processes of a command
    disk_bytes: int = 128 * 1024 * 1024  # files of a command, those of the workspace included
    count: int = 64  # processes and threads of a command at a time


class ProcessSettings:
    """Settings of real processes."""

    limits = MachineLimit("THINK_PROCESSES", ProcessLimits())
    """Limits of commands of models: runs at a time in one process, and of one user; seconds in the queue, by the clock
    and on the processor; processors in containers; memory, files, and the count of processes of one command. Raise
    them for builds and long tests."""

    isolation = Setting("THINK_PROCESSES_ISOLATION", "")
    """How commands are kept apart: unshare, bwrap, podman or docker. Empty: the first that works. off: none. Set it to
    insist on one, or to run no commands."""

    image = Setting("THINK_PROCESSES_IMAGE", "")
    """Image of a container engine with the programs of commands, which has to be there. Empty: this machine's. Set it
    to offer other programs than the machine has."""


process_settings = ProcessSettings()
