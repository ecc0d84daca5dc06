"""Servers of MCP that tests start as processes of their own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

ODD: Final = Path(__file__).parents[3] / "mcp" / "odd_server.py"
"""The server for what those of others do not do; it notes what happens in the folder that it is given."""
RAW: Final = ODD.with_name("raw_server.py")
"""The server that says what a file holds, whether or not it follows the protocol."""


@contextmanager
def running(command: list[str], port: int, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server of the network until it answers, and end it at the end."""
    process = subprocess.Popen(command, env={**os.environ, **environ}, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1_000):
            assert process.poll() is None
            try:
                httpx.get(f"http://127.0.0.1:{port}/mcp", timeout=1)
                break
            except httpx.HTTPError:
                pass
        yield process
    finally:
        process.kill()
        process.wait()
