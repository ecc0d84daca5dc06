"""What statements read, counted by the database: rows on PostgreSQL, steps of its machine (by tens) on SQLite."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection


def take_statistics() -> None:
    """Have the planner know how large the tables are: it reads small ones in other ways than large ones."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


@contextmanager
def cost() -> Iterator[Callable[[], int]]:
    """What the statements of the block read."""
    if connection.vendor == "postgresql":
        before = _rows_read()
        yield lambda: _rows_read() - before
        return
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    connection.ensure_connection()
    connection.connection.set_progress_handler(step, 10)
    try:
        yield lambda: steps
    finally:
        connection.connection.set_progress_handler(None, 10)


def _rows_read() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables"
        )
        return int(cursor.fetchone()[0])
