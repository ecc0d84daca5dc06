"""Which tests a plain run takes: those of every change, and each time another tenth of the rest, so that none rots.

`make test` chooses the tenth (`TEST_TENTH`) by the day and by the runs that the checkout has seen on it: ten runs in a
row, or one a day for ten days, see every test there is. `TEST_TENTH=4` takes a certain one, `TEST_TENTH=none` none.
"""

import os
import zlib
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


def is_plain(item: pytest.Item, database: str) -> bool:
    """Whether a test is one of every change. PostgreSQL repeats only what locks, searches or writes SQL of its own."""
    if item.get_closest_marker("long"):
        return False
    return database == "sqlite" or item.get_closest_marker("own_sql") is not None


def select(items: list[pytest.Item], *, database: str, tenth: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Split the tests into those of a plain run and those it leaves out, in order.

    On PostgreSQL the rest are the tests that depend on the database.
    """
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_rest = database == "sqlite" or item.get_closest_marker("database") is not None
        is_seen = is_rest and str(tenth_of(item.nodeid)) == tenth
        (kept if is_seen or is_plain(item, database) else left).append(item)
    return kept, left
