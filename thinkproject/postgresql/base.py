"""Django's PostgreSQL, whose pool gives away connections without asking the server about each.

Every call of the bridge takes a connection from the pool and gives it back, so a question each time costs as much as a
statement. A server that has gone or has closed a connection has said so on it: what is waiting to be read on an idle
connection is that, or close to it, and then the server is asked. It is asked as well where a connection was not used
for a while, as something between the two may have dropped it in silence.
"""

import select
import time
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from django.db.backends.postgresql import base

ASK_AFTER_SECONDS: Final = 5.0

_given_at: "WeakKeyDictionary[Any, float]" = WeakKeyDictionary()


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that is looked at when it comes from the pool."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Take one that works. Broken ones go back to the pool, which makes others in their place."""
        while True:  # there are as many as the pool holds; where the server is gone, the pool gives up
            connection = super().get_new_connection(conn_params)
            if not self.pool or _works(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)


def _works(connection: Any) -> bool:
    given_at, now = _given_at.get(connection), time.monotonic()
    _given_at[connection] = now
    if given_at is not None and now - given_at < ASK_AFTER_SECONDS and _is_quiet(connection):
        return True
    try:
        connection.execute("")
    except psycopg.Error:
        return False
    return True


def _is_quiet(connection: Any) -> bool:
    """Whether nothing came over the connection that was not asked for, such as its end."""
    if connection.closed or not hasattr(select, "poll"):  # no poll on Windows
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)
