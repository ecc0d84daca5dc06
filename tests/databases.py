"""One migrated database for all processes of a run of the tests: the first one makes it, each takes a copy.

On SQLite it is the same one for tests in a process and for products in processes of their own.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

from tests.acceptance import prepared

VARIABLE = "TEST_DATABASES"
"""Hands the folder of the first process on to those that it starts."""


def folder() -> Path:
    """Where the original is, or what it is called; ends with the process that asked first."""
    return Path(os.environ.setdefault(VARIABLE, str(settings.TEST_DIR)))


def use_copy() -> None:
    """Connect this process to a copy of the migrated database. It goes with the folder or the server of the run."""
    with prepared.locked() as place:
        if connection.vendor == "sqlite":
            _copy_file(place / prepared.MIGRATED)
        else:
            _copy_database()


def _copy_file(original: Path) -> None:
    own = settings.TEST_DIR / "test.sqlite3"
    if not original.exists():
        with _made() as name:
            shutil.copy(name, original)
    else:
        shutil.copy(original, own)
        connection.settings_dict["NAME"] = own


def _copy_database() -> None:
    marker = folder() / "migrated"
    if not marker.exists():
        with _made() as name:
            marker.write_text(name, encoding="utf-8")
    connection.settings_dict["NAME"] = marker.read_text(encoding="utf-8")
    suffix = f"copy_{os.getpid()}"
    copy = connection.creation.get_test_db_clone_settings(suffix)
    connection.creation.clone_test_db(suffix, verbosity=0, autoclobber=True)
    connection.settings_dict.update(copy)


@contextmanager
def _made() -> Iterator[str]:
    """The name of a new database, migrated, without a connection to it."""
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()
    yield str(connection.settings_dict["NAME"])
