"""The flush after a test that committed.

Threads of a test that has ended may still be reading. On PostgreSQL the flush and one of them can wait for each other;
when the flush is the one that is ended, it is done again.
"""

from collections.abc import Callable, Iterator

from django.core.management.base import CommandError
from django.db import OperationalError

TRIES = 5
DEADLOCK = "40P01"


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
