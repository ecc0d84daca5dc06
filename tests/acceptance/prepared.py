"""Databases as `thinkproject.run.prepare` leaves them, with people in them: made once in a run of tests and copied.

The folder with the originals is that of the first process that asks; those that it starts (pytest-xdist, benchmarks)
find its path in their environment.
"""

import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from tests.acceptance.hand import ROOT, Hand
from thinkproject.postgres_for_tests import shared_postgres_url

VARIABLE = "TEST_PREPARED_DIR"
NAMES = ("alice", "bob")
FILE = "think.sqlite3"
MIGRATED = "migrated.sqlite3"
"""A file without rows, in the folder of the originals."""
OWN_DATABASE = frozenset({"THINK_APPS", "SECRET_KEY", "DATABASE_URL"})
"""Who sets one of these needs a database that was made with it."""


def folder() -> Path:
    """Where the originals are; ends with the process that asked first."""
    if VARIABLE not in os.environ:
        path = tempfile.mkdtemp(prefix="thkt")
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        os.environ[VARIABLE] = path
    return Path(os.environ[VARIABLE])


def prepare(environ: Mapping[str, str]) -> None:
    """Do what `make run` does with the database before the servers start."""
    _call(["-m", "thinkproject.run.prepare"], environ)


def _call(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def copy_sqlite(environ: Mapping[str, str], target: Path) -> list[dict[str, str]]:
    """Put a copy of the prepared file at `target`; returns the people in it."""
    with locked() as place:
        original = place / "sqlite"
        people = _made(original, environ)
    _copy(original / FILE, target)
    return people


def copy_migrated(environ: Mapping[str, str], target: Path) -> None:
    """Put a copy of a migrated file without rows at `target`."""
    with locked() as place:
        _copy(_migrated(place, environ), target)


def _migrated(place: Path, environ: Mapping[str, str]) -> Path:
    original = place / MIGRATED
    if not original.exists():
        made = place / "migrating"
        made.mkdir(mode=0o700, exist_ok=True)
        _call(["manage.py", "migrate", "--verbosity", "0"], {**environ, "THINK_DATA_DIR": str(made)})
        _copy(made / FILE, original)
    return original


def _copy(original: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(original, target)
    target.chmod(0o600)


def copy_postgres(environ: Mapping[str, str]) -> tuple[str, list[dict[str, str]]]:
    """Make a copy of the prepared database; returns its address and the people in it."""
    with locked() as place:
        server = hashlib.sha256(shared_postgres_url().encode()).hexdigest()[:12]
        original = f"prepared_{server}"
        made = place / original
        if not (made / "people.json").exists():
            new_postgres(original)
        people = _made(made, {**environ, "DATABASE_URL": address_of(original)})
        return new_postgres(template=original), people


def new_postgres(name: str = "", *, template: str = "template1") -> str:
    """Make a PostgreSQL database on the server of this run and return its address."""
    name = name or f"acceptance_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(shared_postgres_url(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
    return address_of(name)


def address_of(database: str) -> str:
    """The address of a database on that server."""
    head, _, query = shared_postgres_url().partition("?")
    return f"{head.rpartition('/')[0]}/{database}?{query}"


@contextlib.contextmanager
def locked() -> Iterator[Path]:
    """The folder of the originals. One process at a time makes them."""
    with (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder()


def _made(place: Path, environ: Mapping[str, str]) -> list[dict[str, str]]:
    """Prepare an installation in `place`, once; returns its people."""
    listed = place / "people.json"
    if not listed.exists():
        place.mkdir(mode=0o700, exist_ok=True)
        if "DATABASE_URL" not in environ:
            _copy(_migrated(place.parent, environ), place / FILE)
        environ = {**environ, "THINK_DATA_DIR": str(place)}
        hand = Hand(environ, place / "hand.log")
        hand.call("thinkproject.run.prepare:prepare")
        people = [hand.call("tests.acceptance.people:make_person", name) for name in NAMES]
        hand.close()
        listed.write_text(json.dumps(people), encoding="utf-8")
    found: list[dict[str, str]] = json.loads(listed.read_text(encoding="utf-8"))
    return found
