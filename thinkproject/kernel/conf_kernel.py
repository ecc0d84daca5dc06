"""Settings of the kernel. They are declared here, where the environment is read for them (`config/app_settings.py`)."""

from thinkproject.kernel.conf import Setting


class ThreadSettings:
    """Sizes of the pools of one process."""

    hook_threads = Setting("THINK_HOOK_THREADS", 32, doc="Threads of a process for sync hooks and callables of agents.")
    tool_threads = Setting("THINK_TOOL_THREADS", 64, doc="Threads of a process for sync tools of agents.")
    threads_per_user = Setting(
        "THINK_THREADS_PER_USER", 16, doc="Threads of each kind that code for one user may have; 0: no limit."
    )
    thread_wait_seconds = Setting(
        "THINK_THREAD_WAIT_SECONDS", 15.0, doc="How long code waits for a thread before it fails as saturated."
    )


class SecretSettings:
    """Settings of encryption."""

    keys: Setting[list[str]] = Setting(
        "THINK_ENCRYPTION_KEYS",
        [],
        doc="Keys that encrypt stored secrets, the newest first; any long random texts. Empty: the site's `SECRET_KEY` "
        "and its fallbacks.",
    )


thread_settings = ThreadSettings()
secret_settings = SecretSettings()
