"""Tell a database that is away for a moment from one that refuses: the first does the same again later."""

import sqlite3
from typing import Final

from django.db import InterfaceError, OperationalError

_AWAY: Final = ("08", "53", "57P")
"""Classes of PostgreSQL's codes: no connection, no resources, the server goes down or comes up."""

_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_outage(error: BaseException) -> bool:
    """Whether a database was away or busy, so that the same statement may do later.

    **Shape:** an error of Django's; others are none. A connection that broke has no code of the server's.
    """
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError):
        return False
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) in _BUSY
    state = getattr(cause, "sqlstate", None)
    return state is None or str(state).startswith(_AWAY)
