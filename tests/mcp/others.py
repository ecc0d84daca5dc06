"""Servers that others wrote, as commands: from PyPI as they are installed, from npm by a lock with hashes.

The npm packages are installed once into `dist/`, which is never committed; afterwards nothing is fetched.
"""

import os
import sys
from pathlib import Path

from deno import find_deno_bin

from tests import npm

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_MCP_DIST", HERE / "dist"))
SERVERS = npm.installed(HERE, DIST)
"""The folder with the packages."""
PACKAGES = {
    "everything": "server-everything",
    "filesystem": "server-filesystem",
    "memory": "server-memory",
}


def of_pypi(name: str, *arguments: str) -> list[str]:
    """The command of `mcp-server-time` and others that are Python packages."""
    return [sys.executable, "-m", f"mcp_server_{name}", *arguments]


def of_npm(name: str, *arguments: str) -> list[str]:
    """The command of a server of the npm packages, which are installed first if need be."""
    folder = SERVERS.get()
    entry = folder / "node_modules" / "@modelcontextprotocol" / PACKAGES[name] / "dist" / "index.js"
    return [find_deno_bin(), "run", *npm.offline(folder), "-A", str(entry), *arguments]
