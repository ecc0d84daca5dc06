"""Which tests a plain run takes: those of every change, and each time another tenth of the rest, so that none rots.

`make test` chooses the tenth (`TEST_TENTH`) by the day and by the runs that the checkout has seen on it: ten runs in a
row, or one a day for ten days, see every test there is. `TEST_TENTH=4` takes a certain one, `TEST_TENTH=none` none.
"""

import os
import zlib
from collections.abc import Collection
from typing import Final

import pytest

TENTHS: Final = 10


def chosen() -> str:
    """The tenth of this run. Errors: `pytest.UsageError` for one that does not exist."""
    tenth = os.environ.get("TEST_TENTH", "none")
    if tenth not in {"none", *map(str, range(TENTHS))}:
        raise pytest.UsageError(f"TEST_TENTH is {tenth!r}, which is neither none nor 0 to {TENTHS - 1}")
    return tenth


def tenth_of(nodeid: str) -> int:
    """The tenth that a test belongs to, which is the same on every machine."""
    return zlib.crc32(nodeid.encode()) % TENTHS


def is_of_every_change(marks: Collection[str], database: str) -> bool:
    """Whether each plain run takes a test. PostgreSQL repeats only what locks, searches or writes SQL of its own."""
    return "long" not in marks and (database == "sqlite" or "own_sql" in marks)


def is_taken(nodeid: str, marks: Collection[str], *, database: str, tenth: str) -> bool:
    """Whether this plain run takes a test. On PostgreSQL the rest is what depends on the database."""
    is_rest = database == "sqlite" or "database" in marks
    return is_of_every_change(marks, database) or (is_rest and str(tenth_of(nodeid)) == tenth)
