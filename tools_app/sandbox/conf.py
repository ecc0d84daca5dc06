"""Settings of code that models write."""

from pathlib import Path

from thinkproject.kernel.conf import Setting


class SandboxSettings:
    """Settings of the sandbox. They bound what the code of models costs the machine."""

    runs = Setting(
        "THINK_SANDBOX_RUNS",
        8,
        doc="Code of models that runs at a time in one process, of all tools together; the rest waits.",
    )
    runs_per_user = Setting("THINK_SANDBOX_RUNS_PER_USER", 2, doc="The same for one user's code in one process.")
    queue_seconds = Setting(
        "THINK_SANDBOX_QUEUE_SECONDS", 30.0, doc="How long code waits for its turn before its call fails."
    )
    memory_bytes = Setting(
        "THINK_SANDBOX_MEMORY_BYTES",
        256 * 1024 * 1024,
        doc="Memory of one run of code. A script of bash holds files of up to a thirty-second of it whole, larger ones "
        "in pieces.",
    )
    seconds = Setting("THINK_SANDBOX_SECONDS", 60.0, doc="Time of one run of code, its calls included.")
    packages_dir = Setting(
        "THINK_SANDBOX_PACKAGES_DIR",
        "",
        doc="Folder with what code may load: bundled packages and Python. Empty: `sandbox` below `THINK_DATA_DIR`; in "
        "a Django project of your own `.cache/think-sandbox` at home.",
    )
    packages: Setting[object] = Setting(
        "THINK_SANDBOX_PACKAGES",
        "",
        doc="npm packages that code may load, at exact versions: `date-fns@4.1.0, zod@4.1.12`, or a mapping.",
    )
    python_memory_bytes = Setting(
        "THINK_SANDBOX_PYTHON_MEMORY_BYTES", 512 * 1024 * 1024, doc="Memory of one run of Python code."
    )
    cpu_seconds = Setting("THINK_SANDBOX_CPU_SECONDS", 30, doc="Processor time of one run of code.")

    may_lack = Setting(
        "THINK_SANDBOX_MAY_LACK",
        "",
        doc="Walls that code may run without: `user`, `network`, `rights`, comma-separated, or `none`. Empty: as root "
        "`network`, otherwise all three.",
    )
    copies_dir = Setting(
        "THINK_SANDBOX_COPIES_DIR",
        "",
        doc="Folder for what code reads as another user, where the installation lies in a private one. Every user has "
        "to be able to enter it. Empty: `/var/cache/think-sandbox`, or one in `/tmp`.",
    )

    @property
    def packages_folder(self) -> Path:
        """The folder of packages."""
        return Path(self.packages_dir) if self.packages_dir else Path.home() / ".cache" / "think-sandbox"


sandbox_settings = SandboxSettings()
