"""The flush after a test and a reader that wait for each other."""

import threading
import time

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from tests.flushing import flush_until_done

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="SQLite locks no tables, so nobody waits for each other"
    ),
]


def wait_for_the_other(cursor: CursorWrapper, table: str) -> None:
    """Wait until another connection waits for this table. A flush takes it last: it has all others by then."""
    deadline = time.monotonic() + 10
    waiting = 0
    while not waiting:
        assert time.monotonic() < deadline, "no connection waits"
        time.sleep(0.01)
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [f'"{table}"'])
        [waiting] = cursor.fetchone() or [0]


def test_a_flush_that_a_deadlock_ended_is_done_again() -> None:
    User.objects.create_user("alice")
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    has_last, errors = threading.Event(), []

    def read() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '1min'")  # so that the flush is the one that is ended
            cursor.execute(f'LOCK TABLE "{names[-1]}" IN ACCESS SHARE MODE')
            has_last.set()
            wait_for_the_other(cursor, names[-1])
            cursor.execute(f'SELECT count(*) FROM "{names[0]}"')
        connection.close()

    def flush() -> None:
        try:
            call_command("flush", verbosity=0, interactive=False, allow_cascade=False, inhibit_post_migrate=True)
        except Exception as error:
            errors.append(error)
            raise

    reader = threading.Thread(target=read)
    reader.start()
    has_last.wait(10)
    flush_until_done(flush)
    reader.join(10)
    assert len(errors) == 1
    assert not User.objects.exists()
