"""Settings of browsers that models drive."""

from dataclasses import dataclass

from thinkproject.kernel.conf import MachineLimit, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLimits:
    """Limits of browsers in one process. They bound what one costs the machine."""

    runs: int = 2
    runs_per_user: int = 1
    queue_seconds: float = 60.0  # that a call waits for a browser before it fails
    seconds: float = 60.0  # of one call
    memory_bytes: int = 1536 * 1024 * 1024  # of all processes of one browser
    network_bytes: int = 100_000_000  # that one browser may send and receive in its life
    kept: int = 4  # of `session="reuse"`, between calls
    kept_per_user: int = 2
    idle_seconds: float = 600.0  # that such a browser is kept unused


class BrowserSettings:
    """Settings of browsers."""

    limits = MachineLimit("THINK_BROWSER", BrowserLimits())
    """Limits of browsers of models: browsers at work at a time in one process, and of one user; seconds in the queue
    and of one call; memory and traffic of one browser; how many of `session="reuse"` are kept between calls, how
    many of one user, and how long unused. Raise them on a larger machine."""

    path = Setting("THINK_BROWSER_PATH", "")
    """The Chromium that models drive. Empty: the first that is installed. Set it where that is not on `PATH`."""

    without_walls = Setting("THINK_BROWSER_WITHOUT_WALLS", False)
    """Whether a browser may start where neither its own sandbox nor namespaces can be had. Set it only where the worker
    itself is shut in."""


browser_settings = BrowserSettings()
