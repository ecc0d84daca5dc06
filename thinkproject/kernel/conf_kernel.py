"""Settings of the kernel. They are declared here, where the environment is read for them (`config/app_settings.py`)."""

from thinkproject.kernel.conf import MachineLimit, PeopleLimit, Setting


class ThreadSettings:
    """Sizes of the pools of one process."""

    hook_threads = MachineLimit("THINK_HOOK_THREADS", 32)
    """Threads of a process for sync hooks and callables of agents. Raise it where hooks wait for other servers."""

    tool_threads = MachineLimit("THINK_TOOL_THREADS", 64)
    """Threads of a process for sync tools of agents. Raise it where tools wait for other servers."""

    threads_per_user = PeopleLimit("THINK_THREADS_PER_USER", 16)
    """Threads of each kind that code for one user may have; 0: no limit. Raise it where few people use much."""


class SecretSettings:
    """Settings of encryption."""

    keys: Setting[list[str]] = Setting("THINK_ENCRYPTION_KEYS", [])
    """Keys that encrypt stored secrets, the newest first; any long random texts. Empty: the site's `SECRET_KEY` and its
    fallbacks. Set it before secrets are stored, and put a new one in front to change keys."""


thread_settings = ThreadSettings()
secret_settings = SecretSettings()
