"""Which tests a plain run takes: the cheap ones always, the costly ones and those that are left out in turns.

Most tests cost a small part of the processor's time, so each plain run takes them. A module that is costly by itself
(`costly.txt`) or starts processes (`STARTING`) is in every tenth run, with all of its tests; the others are not even
imported. Of the tests elsewhere that are marked `long` another tenth is in each, and of the modules that are not
repeated on PostgreSQL each time. `make test` chooses the turn (`TEST_TENTH`) by the day and by the runs that the
checkout has seen on it: ten runs in a row, or one a day for ten days, see every test there is. `TEST_TENTH=4` takes a
certain turn, `TEST_TENTH=none` none, and `TEST_TENTH=whole` (`make whole`) every module, without what is marked `long`.
"""

import os
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Final

import pytest

TENTHS: Final = 10
WHOLE: Final = "whole"
STARTING: Final = ("tests/browser/", "tests/clients/", "tests/acceptance/")
"""Folders whose modules start processes, which takes longer than their tests."""
ALWAYS: Final = ("tests/acceptance/wire/", "tests/acceptance/client/")
"""Of these folders, those that say that a product starts, answers, and survives a kill."""
OWN_SQL: Final = (
    "tests/db/sessions_app/",
    "tests/db/fibers/",
    "tests/db/tools_app/",
    "tests/db/chat/durable_streams/",
    "tests/db/chat/streams/",
    "tests/db/chat/reads/test_long_history.py",
    "tests/db/chat/realtime/test_lost_notifications.py",
    "tests/db/chat/test_pgbouncer.py",
    "tests/db/chat/instances/test_quotas.py",
    "tests/db/chat/operations/test_retention.py",
    "tests/db/chat/test_waiting.py",
    "tests/db/chat/turns/test_admission_tries.py",
    "tests/db/chat/turns/test_concurrency.py",
    "tests/db/chat/turns/test_deadlocks.py",
    "tests/db/chat/turns/test_lock_order.py",
    "tests/db/chat/turns/test_query_counts.py",
    "tests/db/chat/turns/test_recovery.py",
    "tests/db/chat/turns/test_shares.py",
    "tests/db/chat/turns/test_turns.py",
    "tests/db/chat/reads/test_opening.py",
    "tests/db/chat/reads/test_snapshot_rows.py",
    "tests/db/chat/test_turn_statements.py",
)
"""What locks, searches or writes SQL that the databases treat differently: a plain run repeats it on PostgreSQL."""
COSTLY: Final = Path(__file__).with_name("costly.txt")


ROOT: Final = Path(__file__).resolve().parents[2]


def dealt(names: list[str]) -> dict[str, int]:
    """The tenth of each. Dealt there and back, so that tenths of names in the order of their costs cost the same."""
    order = [*range(TENTHS), *reversed(range(TENTHS))]
    return {name: order[at % len(order)] for at, name in enumerate(names)}


def costly_modules() -> list[str]:
    """Modules that are costly by themselves, the costliest first."""
    lines = COSTLY.read_text(encoding="utf-8").splitlines()
    return [line.split()[1] for line in lines if not line.startswith("#")]


def starting_modules() -> list[str]:
    """Modules that start processes, but those that are in every run; the one with most tests first."""
    paths = [path for folder in STARTING for path in (ROOT / folder).rglob("test_*.py")]
    tests = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("def test_") for path in paths}
    return sorted((name for name in tests if not name.startswith(ALWAYS)), key=lambda name: (-tests[name], name))


TENTH_OF: Final = {**dealt(costly_modules()), **dealt(starting_modules())}


def chosen() -> str:
    """The turn of this run. Errors: `pytest.UsageError` for one that does not exist."""
    tenth = os.environ.get("TEST_TENTH", "none")
    if tenth not in {"none", WHOLE, *map(str, range(TENTHS))}:
        raise pytest.UsageError(f"TEST_TENTH is {tenth!r}, which is neither none, {WHOLE} nor 0 to {TENTHS - 1}")
    return tenth


def tenth_of(nodeid: str, *, database: str = "sqlite") -> int:
    """The tenth of a test, the same on every machine: its module's, where that takes turns as a whole."""
    module = nodeid.partition("::")[0]
    if module in TENTH_OF:
        return TENTH_OF[module]
    is_whole = module.startswith(ALWAYS) or database != "sqlite"
    return zlib.crc32((module if is_whole else nodeid).encode()) % TENTHS


def is_read(module: str, *, tenth: str, database: str = "sqlite") -> bool:
    """Whether a plain run takes any test of a module, so that it has to be imported."""
    if tenth == str(tenth_of(module, database=database)):
        return True
    if database != "sqlite" and not module.startswith(OWN_SQL):
        return False
    return tenth == WHOLE or module not in TENTH_OF


def is_left_out(marks: Collection[str], database: str) -> bool:
    """Whether a test is `long`, or one PostgreSQL need not repeat: without SQL that the two treat differently."""
    return "long" in marks or not (database == "sqlite" or "own_sql" in marks)


def is_taken(nodeid: str, marks: Collection[str], *, database: str, tenth: str) -> bool:
    """Whether a plain run takes a test. On PostgreSQL the rest is what depends on the database."""
    is_turn = tenth == str(tenth_of(nodeid, database=database))
    if is_left_out(marks, database):
        return (database == "sqlite" or "database" in marks) and is_turn
    return tenth == WHOLE or is_turn or nodeid.partition("::")[0] not in TENTH_OF
