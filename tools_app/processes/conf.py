"""Settings of commands that run as real processes."""

from thinkproject.kernel.conf import Setting


class ProcessSettings:
    """Settings of real processes. They bound what one command costs the machine."""

    runs = Setting("THINK_PROCESSES_RUNS", 2, doc="Commands of models that run at a time in one process; others wait.")
    runs_per_user = Setting("THINK_PROCESSES_RUNS_PER_USER", 1, doc="The same for one user's commands in one process.")
    queue_seconds = Setting(
        "THINK_PROCESSES_QUEUE_SECONDS", 60.0, doc="How long a command waits for its turn before its call fails."
    )
    seconds = Setting("THINK_PROCESSES_SECONDS", 120.0, doc="Time of one command, by the clock.")
    cpu_seconds = Setting("THINK_PROCESSES_CPU_SECONDS", 120, doc="Processor time of each process of a command.")
    memory_bytes = Setting(
        "THINK_PROCESSES_MEMORY_BYTES", 1024 * 1024 * 1024, doc="Memory of all processes of one command."
    )
    processes = Setting("THINK_PROCESSES_COUNT", 64, doc="Processes and threads of one command at a time.")
    disk_bytes = Setting(
        "THINK_PROCESSES_DISK_BYTES", 128 * 1024 * 1024, doc="Files of one command, those of the workspace included."
    )
    isolation = Setting(
        "THINK_PROCESSES_ISOLATION",
        "",
        doc="How commands are kept apart: unshare, bwrap, podman or docker. Empty: the first that works. off: none.",
    )
    image = Setting(
        "THINK_PROCESSES_IMAGE",
        "",
        doc="Image of a container engine with the programs of commands, which has to be there. Empty: this machine's.",
    )
    cpus = Setting("THINK_PROCESSES_CPUS", 1.0, doc="Processors of one command, in containers with control groups.")


process_settings = ProcessSettings()
