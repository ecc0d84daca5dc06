"""Settings of requests and event streams."""

from thinkproject.kernel.conf import MachineLimit


class HttpSettings:
    """Read at each use."""

    request_max_bytes = MachineLimit("THINK_REQUEST_MAX_BYTES", 1024 * 1024)
    """Largest body of a request to a page or to an unknown address. JSON of the API may have 16 MiB, an upload the size
    of its file. Raise it where pages of your own take more."""

    stream_keep_alive_seconds = MachineLimit("THINK_STREAM_KEEP_ALIVE_SECONDS", 15.0)
    """Pause between keep-alive comments of an idle event stream. Lower it where a proxy cuts idle connections."""


http_settings = HttpSettings()
