"""A web server of a given kind with the application of `echo_app`, and what it has counted."""

import json
import socket
import sys
import urllib.request
from pathlib import Path

from tests.acceptance.product import Process, base_environ, wait_for

SERVERS = ("uvicorn", "daphne")


def start_server(folder: Path, command: list[str], listener: socket.socket, **environ: str) -> Process:
    process = Process("server", command, base_environ(folder) | environ, folder, pass_fds=[listener.fileno()])
    process.port = listener.getsockname()[1]
    process.start()
    wait_for(lambda: counts(process) is not None, what="the server")
    return process


def counts(process: Process) -> dict[str, int] | None:
    assert process.is_running, process.log
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/?token=think_canary", timeout=5) as response:
            return dict(json.load(response))
    except OSError:
        return None


def echo_command(kind: str, listener: socket.socket, *options: str) -> list[str]:
    return [sys.executable, "-m", "tests.acceptance.ops.echo_app", kind, str(listener.fileno()), *options]
