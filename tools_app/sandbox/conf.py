"""Settings of code that models write."""

from dataclasses import dataclass
from pathlib import Path

from thinkproject.kernel.conf import MachineLimit, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Limits of the sandbox in one process. They bound what the code of models costs the machine."""

    runs: int = 8
    runs_per_user: int = 2
    queue_seconds: float = 30.0  # that code waits for its turn before its call fails
    seconds: float = 60.0  # of one run, its calls included
    cpu_seconds: int = 30
    memory_bytes: int = 256 * 1024 * 1024  # bash holds files of up to a thirty-second of it whole
    python_memory_bytes: int = 512 * 1024 * 1024


class SandboxSettings:
    """Settings of the sandbox."""

    limits = MachineLimit("THINK_SANDBOX", SandboxLimits())
    """Limits of code of models: runs at a time in one process, and of one user; seconds in the queue, by the clock and
    on the processor; memory of one run, and of one run of Python. Raise them on a larger machine."""

    packages_dir = Setting("THINK_SANDBOX_PACKAGES_DIR", "")
    """Folder with what code may load: bundled packages and Python. Empty: `sandbox` below `THINK_DATA_DIR`; in a Django
    project of your own `.cache/think-sandbox` at home. Set it where workers share no data directory."""

    packages: Setting[object] = Setting("THINK_SANDBOX_PACKAGES", "")
    """npm packages that code may load, at exact versions: `date-fns@4.1.0, zod@4.1.12`, or a mapping. Set it for code
    that needs more than the language has."""

    may_lack = Setting("THINK_SANDBOX_MAY_LACK", "")
    """Walls that code may run without: `user`, `network`, `rights`, comma-separated, or `none`. Empty: as root
    `network`, otherwise all three. Set it to `none` where code comes from strangers."""

    copies_dir = Setting("THINK_SANDBOX_COPIES_DIR", "")
    """Folder for what code reads as another user, where the installation lies in a private one. Every user has to be
    able to enter it. Empty: `/var/cache/think-sandbox`, or one in `/tmp`. Set it where neither can be had."""

    @property
    def packages_folder(self) -> Path:
        """The folder of packages."""
        return Path(self.packages_dir) if self.packages_dir else Path.home() / ".cache" / "think-sandbox"


sandbox_settings = SandboxSettings()
