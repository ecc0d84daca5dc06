"""Search in the entries of a context block."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.models import ContextEntry, EntryWords, Session
from sessions_app.search.indexing import index_entries
from sessions_app.search.query import search_entries
from sessions_app.testing import make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def empty_session() -> Session:
    return make_session()


def put(key: str, content: str, *, label: str = "notes", **whose: object) -> ContextEntry:
    entry = ContextEntry.objects.create(label=label, key=key, content=content, **whose)
    index_entries([entry])
    return entry


def keys(query: str, *, label: str = "notes", **whose: Any) -> list[str]:
    return [entry.key for entry in search_entries(query, label=label, **whose).entries]


def test_entries_are_found_by_their_words_best_first(empty_session: Session) -> None:
    put("door", "The door is locked", session=empty_session)
    put("locks", "Locks: lock and key", session=empty_session)
    assert keys("lock", session_id=empty_session.pk) == ["locks", "door"]
    assert keys("lock -door", session_id=empty_session.pk) == ["locks"]
    assert (
        search_entries("lock", label="notes", session_id=empty_session.pk, limit=1)
        .entries[0]
        .content.startswith("Locks")
    )


def test_setting_an_entry_again_replaces_it_and_deleting_removes_it(empty_session: Session) -> None:
    entry = put("door", "The door is locked", session=empty_session)
    entry.content = "The door is open"
    entry.save()
    index_entries([entry])
    assert (keys("lock", session_id=empty_session.pk), keys("open", session_id=empty_session.pk)) == ([], ["door"])
    entry.delete()
    assert keys("open", session_id=empty_session.pk) == []
    assert not EntryWords.objects.exists()


def test_a_block_finds_its_own_entries_alone(empty_session: Session) -> None:
    alice = User.objects.create_user("alice")
    put("mine", "locked", session=empty_session)
    put("other block", "locked", session=empty_session, label="facts")
    put("other session", "locked", session=make_session())
    put("user's", "locked", owner=alice)
    assert keys("locked", session_id=empty_session.pk) == ["mine"]
    assert keys("locked", session_id=empty_session.pk, label="facts") == ["other block"]
    assert keys("locked", owner_id=alice.pk) == ["user's"]


def test_a_malformed_query_gives_the_reason(empty_session: Session) -> None:
    found = search_entries('"', label="notes", session_id=empty_session.pk)
    assert (found.entries, found.problem) == ([], "A quotation mark is not closed.")
