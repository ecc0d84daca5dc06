"""Servers that others wrote, as commands: from PyPI as they are installed, from npm by a lock with hashes.

The npm packages are installed once, with the Deno of the wheel, into `dist/`, which is never committed; afterwards
nothing is fetched.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from deno import find_deno_bin

from thinkproject.run.bootstrap import trusting_this_machine

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_MCP_DIST", HERE / "dist"))
INPUTS = ("package.json", "deno.json", "deno.lock")
SECONDS = 300.0
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
    folder = installed()
    entry = folder / "node_modules" / "@modelcontextprotocol" / PACKAGES[name] / "dist" / "index.js"
    return [find_deno_bin(), "run", "--quiet", "--cached-only", "--no-lock", "-A", str(entry), *arguments]


def installed() -> Path:
    """The folder with the packages."""
    DIST.mkdir(parents=True, exist_ok=True)
    with (DIST / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at once
        stamp, wanted = DIST / "stamp", _stamp()
        if not (stamp.exists() and stamp.read_text() == wanted):
            stamp.unlink(missing_ok=True)
            for name in INPUTS:
                shutil.copy(HERE / name, DIST / name)
            _install()
            stamp.write_text(wanted)
    return DIST


def _stamp() -> str:
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def _install() -> None:
    environ = {**trusting_this_machine(), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    command = [find_deno_bin(), "install", "--frozen"]
    done = subprocess.run(command, cwd=DIST, env=environ, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
