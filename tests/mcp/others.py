"""Servers that others wrote, as commands: from PyPI and npm, by locks with hashes.

They are installed once into `dist/`, which is never committed; afterwards nothing is fetched. Those below `published/`
are apart: their Python packages need another version of the protocol's package than ours.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from deno import find_deno_bin

from tests import npm
from thinkproject.run.bootstrap import trusting_this_machine

HERE = Path(__file__).resolve().parent
DIST = Path(os.environ.get("TEST_MCP_DIST", HERE / "dist"))
SERVERS = npm.installed(HERE, DIST)
"""The folder with the packages."""
UV = Path(sys.executable).with_name("uv")


def _install_python(folder: Path) -> None:
    """Make an environment of the lock in a folder. Errors: `NpmFailed`, whose words fit any registry."""
    environ = {**trusting_this_machine(), "UV_NO_PROGRESS": "1"}
    target = folder / ".venv"
    for command in (
        ["venv", "--quiet", "--clear", "--python", sys.executable, str(target)],
        ["pip", "sync", "--quiet", "--require-hashes", "--python", str(target / "bin" / "python"), "pypi.txt"],
    ):
        done = subprocess.run(
            [str(UV), *command], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode != 0:
            raise npm.NpmFailed(f"uv {command[0]}:\n{done.stderr.strip()[-3000:]}")


PUBLISHED = HERE / "published"
PUBLISHED_NPM = npm.installed(PUBLISHED, DIST / "published-npm")
PUBLISHED_PYPI = npm.Made(DIST / "published-pypi", [PUBLISHED / "pypi.txt"], _install_python, salt=sys.version)
"""The environment is in a hidden folder, which checks of types pass over."""
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


def published_npm(package: str, *arguments: str) -> list[str]:
    """The command of a package of `published/package.json`."""
    folder = PUBLISHED_NPM.get()
    place = folder / "node_modules" / package
    entry = json.loads((place / "package.json").read_text())["bin"]
    script = entry if isinstance(entry, str) else next(iter(entry.values()))
    return [find_deno_bin(), "run", *npm.offline(folder), "-A", str(place / script), *arguments]


def published_pypi(program: str, *arguments: str) -> list[str]:
    """The command of a program of `published/pypi.txt`."""
    return [str(PUBLISHED_PYPI.get() / ".venv" / "bin" / program), *arguments]


def versions() -> dict[str, str]:
    """The version of each server by its package's name, as the locks have it."""
    found: dict[str, str] = {}
    for folder in (HERE, PUBLISHED):
        found |= json.loads((folder / "package.json").read_text())["dependencies"]
    for lock in (PUBLISHED / "pypi.txt", HERE.parents[1] / "requirements" / "dev.txt"):
        pinned = re.findall(r"^([a-z0-9-]+)==([^ \\]+)", lock.read_text(), re.MULTILINE)
        found |= {name: version for name, version in pinned if name not in found}
    return found
