"""Connection settings of database, Redis and broker from their URLs."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

from thinkproject.config.env import EnvError

SQLITE_ENGINE = "thinkproject.sqlite3"  # Django's, with a queue for writers
POSTGRESQL_ENGINE = "thinkproject.postgresql"  # Django's, with a cheaper look at what the pool gives
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",  # a write that starts as a read cannot wait for its turn
    "timeout": 20,  # seconds; SQLite wakes those who wait for its one writer in no order
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-8000;PRAGMA temp_store=MEMORY;"
    ),
}


def database(url: str, data_dir: Path, *, pool_size: int) -> dict[str, Any]:
    """Return Django's database entry. Errors: `EnvError` for an address that makes no sense."""
    if not url:
        url = f"sqlite:///{data_dir / 'think.sqlite3'}"
    try:
        entry: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError as error:
        raise EnvError(_broken(url)) from error
    engine = str(entry["ENGINE"])
    if engine.endswith("sqlite3"):
        entry["ENGINE"] = SQLITE_ENGINE
        if entry.get("NAME") in {"", ":memory:", None}:  # several processes share it
            raise EnvError("DATABASE_URL names no file; expected sqlite:////absolute/path/to/file.")
        entry["OPTIONS"] = {**entry.get("OPTIONS", {}), **SQLITE_OPTIONS}
        entry["TEST"] = {"NAME": f"{entry['NAME']}.test"}  # a file too: turns read and write from several threads
        entry["CONN_MAX_AGE"] = 60  # opening costs little, but the few bridge threads may keep theirs
    elif engine.endswith("postgresql"):
        entry["ENGINE"] = POSTGRESQL_ENGINE
        pool = {"min_size": 0, "max_size": pool_size, "timeout": 10, "max_idle": 120}
        entry["OPTIONS"] = {"pool": pool, "connect_timeout": 5, **entry.get("OPTIONS", {})}
        entry["CONN_MAX_AGE"] = 0  # connections go back to the pool after each call, and none is held while idle
        entry["DISABLE_SERVER_SIDE_CURSORS"] = True  # a pooler may give the next rows another connection
        entry["CONN_HEALTH_CHECKS"] = False  # the engine looks by itself
    else:
        raise EnvError(_broken(url))
    return entry


def redis_address(url: str) -> str:
    """Return the address of a Redis as given. Errors: `EnvError` for a scheme that is none of redis, rediss, unix."""
    if url and urlsplit(url).scheme not in {"redis", "rediss", "unix"}:
        raise EnvError("REDIS_URL is not an address of a Redis; expected redis://, rediss:// or unix://.")
    return url


def broker_address(redis_url: str) -> str:
    """Return the same Redis as Celery's broker wants it written."""
    scheme, _, rest = redis_url.partition("://")
    if scheme != "unix":
        return redis_url
    path, _, query = rest.partition("?")
    number = query.removeprefix("db=") if query.startswith("db=") else ""
    return f"redis+socket://{path}" + (f"?virtual_host={number}" if number else "")


def _broken(url: str) -> str:
    scheme = url.partition("://")[0] if "://" in url else ""
    found = f" (it starts with {scheme!r})" if scheme else ""
    return (
        f"DATABASE_URL is not an address of a database{found}; expected sqlite:////file or postgres://user@host/name."
    )
