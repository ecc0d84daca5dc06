"""System checks of conversation storage. Each id is documented in `docs/design/sessions.md`."""

import sqlite3
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SUPPORTED = ("sqlite3", "postgresql")
OLDEST_SQLITE: Final = (3, 35)  # RETURNING


@register("sessions")
def check_database(**_: object) -> list[CheckMessage]:
    """E001 an unsupported database, E002 an isolation level that writers cannot wait in, E003 an old SQLite."""
    database: dict[str, Any] = settings.DATABASES["default"]
    if not database["ENGINE"].endswith(SUPPORTED):
        message = f"Conversations are stored on SQLite or PostgreSQL, not on {database['ENGINE']!r}."
        return [Error(message, hint="Set DATABASE_URL to one of the two.", id="think_sessions.E001")]
    if database["ENGINE"].endswith("sqlite3") and sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return [
            Error(
                f"This Python's SQLite is {sqlite3.sqlite_version}; 3.35 or newer is needed.",
                hint="Use another build of Python, or PostgreSQL.",
                id="think_sessions.E003",
            )
        ]
    # psycopg's enumeration: 1 is READ UNCOMMITTED, 2 READ COMMITTED; what is stricter fails instead of waiting.
    level = database.get("OPTIONS", {}).get("isolation_level")
    if level is not None and int(level) > 2:
        return [
            Error(
                "The database's isolation level is stricter than READ COMMITTED.",
                hint="Writers of one session wait for each other on its row; under a stricter level they fail instead.",
                id="think_sessions.E002",
            )
        ]
    return []
