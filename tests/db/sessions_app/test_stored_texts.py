"""The window as texts: the same messages as the window that is parsed, in one statement that uses the indexes."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.messages import selectors, services
from sessions_app.messages.stored_texts import window_texts
from sessions_app.models import Session
from sessions_app.testing import make_message, make_session, text_message

pytestmark = pytest.mark.django_db


def straight() -> Session:
    return make_session("u: one", "a: 1", "u: two", "a: 2", "u: three", "a: 3")


def waiting() -> Session:
    session = straight()
    services.queue_messages(session.pk, [text_message("user", "later", "q1"), text_message("user", "last", "q0")])
    return session


def only_waiting() -> Session:
    session = make_session()
    services.queue_messages(session.pk, [text_message("user", "later", "q1")])
    return session


def forked() -> Session:
    fork = services.fork_session(straight().pk, "a4")
    make_message(fork, "further", message_id="f")
    return fork


def archived() -> Session:
    session = straight()
    services.archive_beyond(session.pk, 4)
    return session


def branched() -> Session:
    session = straight()
    services.append_messages(session.pk, [text_message("user", "other", "other")], after="a2")
    return session


def without_question() -> Session:
    session = make_session("a: welcome")
    for number in range(6):
        make_message(session, "x" * 500, role="assistant", message_id=f"a{number}")
    return session


def summarised() -> Session:
    session = make_session("u: hi", "a: hello")
    summary = text_message("assistant", "summary", "compaction_x")
    summary["metadata"] = {"compaction": {"firstId": "u1", "lastId": "a2"}}
    for message in (summary, text_message("assistant", "compaction_ is only a word", "compaction_y")):
        services.append_messages(session.pk, [message])
    return session


SESSIONS = [make_session, straight, waiting, only_waiting, forked, archived, branched, without_question, summarised]


@pytest.mark.parametrize("make", SESSIONS, ids=lambda make: make.__name__)
def test_it_is_the_window(make: Callable[[], Session]) -> None:
    session = make()
    for max_messages in (1, 2, 3, 4, 5, 500):
        for max_bytes in (0, 300, 1_000, 512 * 1024):
            bounds = {"max_messages": max_messages, "max_bytes": max_bytes}
            read = selectors.window(session.pk, **bounds)
            texts = window_texts(session.pk, **bounds)
            assert [(t.to_ui(), t.turn_id, t.placed) for t in texts] == [
                (m.to_ui(), m.turn_id, m.placed) for m in read
            ], bounds


def test_an_unknown_session_has_none() -> None:
    assert window_texts("ses_unknown") == []


def test_it_is_one_statement_that_scans_no_table() -> None:
    session = waiting()
    with CaptureQueriesContext(connection) as captured:
        window_texts(session.pk)
    [query] = captured.captured_queries
    if connection.vendor != "sqlite":
        pytest.skip("on a table of eight rows PostgreSQL rightly scans; the benchmark covers it")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
        plan = "\n".join(row[3] for row in cursor.fetchall())
    assert "SCAN m" not in plan, plan
    assert "SCAN s" not in plan, plan
