"""The flush after a test that committed.

Django empties every table and then makes all permissions and content types anew: 20 ms on SQLite and 100 ms on
PostgreSQL, where few tables have rows. Deleting what is there takes a tenth or less of that.

Threads of a test that has ended may still be reading. On PostgreSQL the flush and one of them can wait for each other;
when the flush is the one that is ended, it is done again.
"""

from collections.abc import Callable, Iterator

from django.core.management.base import CommandError
from django.db import OperationalError, connection

from thinkproject.kernel.append_only import erasing

MADE_BY_MIGRATE = frozenset({"auth_permission", "django_content_type"})

TRIES = 5
DEADLOCK = "40P01"


def empty_tables() -> None:
    """Delete all rows but those that `migrate` makes. Foreign keys are checked at the end, so any order will do."""
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    names = sorted(tables - MADE_BY_MIGRATE)
    quote = connection.ops.quote_name
    filled = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quote(name)})" for name in names)
    with erasing(), connection.cursor() as cursor:
        cursor.execute(filled)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {quote(name)}")


def flush_until_done(flush: Callable[[], None]) -> None:
    """Call it, and call it again after a deadlock. Errors: any other, and the deadlock of the last try."""
    for tries_left in reversed(range(TRIES)):
        try:
            flush()
        except (CommandError, OperationalError) as error:
            if not tries_left or not any(getattr(cause, "sqlstate", None) == DEADLOCK for cause in _causes(error)):
                raise
        else:
            return


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
