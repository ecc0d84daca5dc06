"""The odd MCP server over HTTP, in a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.live_product import free_port

ODD = Path(__file__).parents[1] / "mcp" / "odd_server.py"


@contextmanager
def running_odd_server(folder: Path) -> Iterator[str]:
    """Run it, and give its address. It notes in `folder` what happens."""
    port = free_port()
    command = [sys.executable, str(ODD), "http", str(port), str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    deadline = time.monotonic() + 30
    while not _listens(port):
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, "the server does not listen"
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()  # asked to end, it would wait for those that listen to it
        process.wait(15)


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
