"""Several queries that see the database as it was at one moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection as default_connection
from django.db import transaction


@contextmanager
def consistent_read() -> Iterator[None]:
    """Read without seeing commits of others meanwhile. Takes no locks and never writes.

    Costs PostgreSQL one statement and the transaction. Within another transaction it changes nothing.
    """
    connection: Any = default_connection  # `transaction_mode` is SQLite's own
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        with _deferred(connection), transaction.atomic():
            yield
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


@contextmanager
def _deferred(connection: Any) -> Iterator[None]:
    # Transactions of the product begin as writers (`fibers.E004` checks it); this one is none.
    connection.ensure_connection()  # which sets the mode
    mode = connection.transaction_mode
    connection.transaction_mode = "DEFERRED"
    try:
        yield
    finally:
        connection.transaction_mode = mode
