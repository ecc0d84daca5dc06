"""Both databases keep the promises of sessions, with nothing to choose or to set up."""

import os

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection

from sessions_app.context.session_context import SessionContext
from sessions_app.core.context.context_blocks import StoredSearch
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.public.manager import SessionManager
from sessions_app.search.engine import engine
from sessions_app.search.postgres import PostgresIndex
from sessions_app.search.query import search
from sessions_app.search.sqlite import SqliteIndex
from sessions_app.testing import history_of

pytestmark = pytest.mark.django_db(transaction=True)

ENGINES = {"sqlite": (SqliteIndex, "sqlite_master"), "postgres": (PostgresIndex, "pg_catalog.pg_indexes")}


def test_the_engine_is_that_of_the_database() -> None:
    """The suite runs once with each value of `TEST_DATABASE`, so that each engine meets the same tests."""
    expected, catalogue = ENGINES[os.environ.get("TEST_DATABASE", "sqlite")]
    assert isinstance(engine(), expected)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {catalogue}")
        assert cursor.fetchone()[0] > 0


def test_what_sessions_promise_holds_without_choosing_a_provider() -> None:
    """A tree, summaries, memory, entries and search, on whichever database the settings name."""
    owner = User.objects.create_user("alice")
    manager = SessionManager(owner_id=owner.pk, scope="s")
    session = manager.create("talk")
    session.append_all(history_of("u: one pear", "a: two pears", "u: three", "a: four"))
    fork = manager.fork(session.id, "a2", "copy")
    session.add_compaction("short", "u1", "a2")
    assert [message.id for message in fork.history()] == ["u1", "a2"]
    assert len(session.history()) == 3
    assert sorted(hit.message_id for hit in search("pear", session_id=session.id).hits) == ["a2", "u1"]

    setup = ContextSetup().with_memory().with_context("facts", provider=StoredSearch()).with_cached_prompt()
    context = SessionContext(session.id, setup)
    async_to_sync(context.replace)("memory", "Likes pears.")
    async_to_sync(context.set_entry)("facts", "Pears grow on trees.", key="pears")
    assert "pears" in async_to_sync(context.search)("facts", "trees")
    assert "Likes pears." in async_to_sync(context.system_prompt)()
