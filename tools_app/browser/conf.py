"""Settings of browsers that models drive."""

from thinkproject.kernel.conf import Setting


class BrowserSettings:
    """Settings of browsers. They bound what one costs the machine."""

    path = Setting("THINK_BROWSER_PATH", "", doc="The Chromium that models drive. Empty: the first that is installed.")
    runs = Setting("THINK_BROWSER_RUNS", 2, doc="Browsers at work at a time in one process; further calls wait.")
    runs_per_user = Setting("THINK_BROWSER_RUNS_PER_USER", 1, doc="The same for one user's calls in one process.")
    queue_seconds = Setting(
        "THINK_BROWSER_QUEUE_SECONDS", 60.0, doc="How long a call waits for a browser before it fails."
    )
    seconds = Setting("THINK_BROWSER_SECONDS", 60.0, doc="Time of one call of a browser's tool.")
    memory_bytes = Setting(
        "THINK_BROWSER_MEMORY_BYTES", 1536 * 1024 * 1024, doc="Memory of all processes of one browser."
    )
    network_bytes = Setting(
        "THINK_BROWSER_NETWORK_BYTES", 100_000_000, doc="Bytes that one browser may send and receive in its life."
    )
    kept = Setting("THINK_BROWSER_KEPT", 4, doc='Browsers of `session="reuse"` kept at a time between calls.')
    kept_per_user = Setting("THINK_BROWSER_KEPT_PER_USER", 2, doc="The same for one user's browsers.")
    idle_seconds = Setting("THINK_BROWSER_IDLE_SECONDS", 600.0, doc="How long such a browser is kept unused.")
    without_walls = Setting(
        "THINK_BROWSER_WITHOUT_WALLS",
        False,
        doc="Whether a browser may start where neither its own sandbox nor namespaces can be had.",
    )


browser_settings = BrowserSettings()
