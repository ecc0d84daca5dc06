"""One migrated database for all processes of a run of the tests: the first one makes it, each takes a copy.

On SQLite it is the same one for tests in a process and for products in processes of their own.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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
        _make(place)
        if connection.vendor == "sqlite":
            own = settings.TEST_DIR / "test.sqlite3"
            shutil.copy(place / prepared.MIGRATED, own)
            connection.settings_dict["NAME"] = own
        else:
            _copy_database()


def make_meanwhile(unblocked: Callable[[], AbstractContextManager[None]]) -> None:
    """Make it in a thread, as the process that starts the others does while these collect. They wait for it."""

    def make() -> None:
        with unblocked(), prepared.locked() as place:
            _make(place)

    threading.Thread(target=make, name="migrating", daemon=True).start()


def _make(place: Path) -> None:
    """Make the original, once in a run."""
    original = place / prepared.MIGRATED if connection.vendor == "sqlite" else folder() / "migrated"
    if original.exists():
        return
    with _made() as name:
        if connection.vendor == "sqlite":
            shutil.copy(name, original)
        else:
            original.write_text(name, encoding="utf-8")


def _copy_database() -> None:
    connection.settings_dict["NAME"] = (folder() / "migrated").read_text(encoding="utf-8")
    suffix = f"copy_{os.getpid()}"
    copy = connection.creation.get_test_db_clone_settings(suffix)
    connection.creation.clone_test_db(suffix, verbosity=0, autoclobber=True)
    connection.settings_dict.update(copy)


@contextmanager
def _made() -> Iterator[str]:
    """The name of a new database, migrated, without a connection to it."""
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()
    if connection.vendor != "sqlite":
        connection.close_pool()  # type: ignore[attr-defined]  # of this engine alone; a copy needs an original without users
    yield str(connection.settings_dict["NAME"])
