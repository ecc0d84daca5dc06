"""Search in messages: the contract that FTS5 and tsvector keep alike."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.messages import shapes
from sessions_app.errors import CursorInvalid
from sessions_app.messages import services
from sessions_app.models import Message, MessageWords, Session
from sessions_app.search import query as search_query
from sessions_app.search import scoping
from sessions_app.search.engine import mend_index
from sessions_app.search.query import SearchHit, SearchPage, search
from sessions_app.testing import make_message, make_session, text_message

pytestmark = pytest.mark.django_db


def ids(page: SearchPage) -> list[str]:
    assert not page.problem
    return sorted(hit.message_id for hit in page.hits)


def found(query: str, session: Session) -> list[str]:
    return ids(search(query, session_id=session.pk))


def hit(query: str, session: Session) -> SearchHit:
    [only] = search(query, session_id=session.pk).hits
    return only


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("searching", ["a2", "u1"]),
        ("SEARCHES key", ["u1"]),
        ("key searched", ["u1"]),
        ('"searching for keys"', ["u1"]),
        ('"for searching"', []),
        ("searched -keys", ["a2"]),
        ('searched -"for keys"', ["a2"]),
        ('searched -"keys for"', ["a2", "u1"]),
        ("keys OR creme", ["u1", "u3"]),
        ('"for keys" OR "creme brulee" OR absent', ["u1", "u3"]),
        ("keys creme OR absent", []),
        ("crème", ["u3"]),
        ("東京", ["a4"]),
        ("京東", []),
        ("의", ["a4"]),
        ("e-mail", ["a4"]),
        ("absent", []),
        ("the", ["a2"]),
    ],
)
def test_words_phrases_and_operators(query: str, expected: list[str]) -> None:
    session = make_session(
        "u: I was searching for keys",
        "a: The search found nothing",
        "u: Creme brûlée?",
        "a: 東京都 한국의 E-Mail",
    )
    assert found(query, session) == expected


@pytest.mark.parametrize("query", ["", '"', "OR", "-keys", "keys OR", "x" * 2_000, "\0", "''", "x " * 99])
def test_a_malformed_query_finds_nothing_and_gives_the_reason(query: str) -> None:
    page = search(query, session_id=make_session("u: keys").pk)
    assert page.hits == []
    assert page.problem


@pytest.mark.parametrize(
    "query",
    [
        *("keys'", "keys)", "(keys", "keys*", "^keys", "words:keys", "NEAR(keys)", "!keys", "{keys}", "keys::int"),
        *("$$keys$$", "@keys", "%s*keys", "keys AND", "NOT keys", "keys\\", "keys\ud800", "keys & |", "\0keys"),
        *("a OR 'b", "<-> keys"),
    ],
)
def test_what_databases_would_read_as_their_own_language_is_only_words(query: str) -> None:
    page = search(query, session_id=make_session("u: keys").pk)
    assert not page.problem
    assert [hit.message_id for hit in page.hits] in (["u1"], [])


def test_only_texts_of_people_and_assistants_are_found() -> None:
    session = make_session("s: keys")
    tool: shapes.Part = {
        "type": "tool-look",
        "toolCallId": "c",
        "state": "output-available",
        "input": {},
        "output": "keys",
    }
    make_message(session, role="assistant", message_id="a", parts=[tool, {"type": "reasoning", "text": "keys"}])
    services.queue_messages(session.pk, [text_message("user", "keys", "q")])
    assert found("keys", session) == []
    services.place_messages(session.pk, ["q"], after=services.Leaf.ACTIVE)
    assert found("keys", session) == ["q"]


def test_the_index_keeps_step() -> None:
    session = make_session("u: keys", "a: doors", "u: keys again")
    services.put_assistant(session.pk, text_message("assistant", "windows", "a2"), after="u1")
    assert (found("doors", session), found("windows", session)) == ([], ["a2"])

    def without_text(message: shapes.Message) -> shapes.Message:
        return {**message, "parts": [{"type": "step-start"}]}

    services.update_message(session.pk, "a2", without_text)
    assert found("windows", session) == []
    services.delete_message(session.pk, "u1")
    assert found("keys", session) == ["u3"]
    services.clear_session(session.pk)
    assert found("keys", session) == []
    assert not MessageWords.objects.exists()


def test_nothing_of_another_session_scope_or_owner_is_found(alice: User, bob: User) -> None:
    first = make_session("u: keys", owner_id=alice.pk, scope="one")
    make_session("u: keys", owner_id=alice.pk, scope="two")
    make_session("u: keys", owner_id=bob.pk, scope="one")
    make_session("u: keys")

    def sessions(**place: Any) -> set[str]:
        return {hit.session_id for hit in search("keys", **place).hits}

    assert sessions(session_id=first.pk) == {first.pk}
    assert len(sessions(owner_id=alice.pk)) == 2
    assert len(sessions(scopes=["one"])) == 2
    assert sessions(scopes=["one", "three"], owner_id=alice.pk) == {first.pk}
    assert sessions(session_id=first.pk, owner_id=bob.pk) == set()
    assert sessions(scopes=[], owner_id=alice.pk) == set()
    with pytest.raises(ValueError, match="needs"):
        search("keys")


def test_the_rows_decide_whose_a_hit_is_and_not_the_tags(alice: User, bob: User) -> None:
    session = make_session("u: keys", owner_id=alice.pk)
    Session.objects.filter(pk=session.pk).update(owner=bob)
    assert search("keys", owner_id=alice.pk).hits == []


def test_a_fork_finds_what_it_shares_and_its_own(alice: User) -> None:
    origin = make_session("u: red keys", "a: blue keys", "u: green keys", owner_id=alice.pk, scope="origin")
    fork = services.fork_session(origin.pk, "a2", scope="fork")
    make_message(fork, "black keys", message_id="f")
    assert found("keys", fork) == ["a2", "f", "u1"]
    assert found("keys", origin) == ["a2", "u1", "u3"]
    assert ids(search("keys", scopes=["fork"])) == ["a2", "f", "u1"]
    assert ids(search("keys", owner_id=alice.pk)) == ["a2", "f", "u1", "u3"]
    shown = hit("blue", fork)
    assert (shown.session_id, shown.scope, shown.is_on_path, shown.leaf_id) == (fork.pk, "fork", True, "f")


def test_what_a_fork_makes_its_own_is_found_there_anew(alice: User) -> None:
    origin = make_session("u: red keys", "a: blue keys", "u: green keys", owner_id=alice.pk)
    fork = services.fork_session(origin.pk, "u3")
    services.put_assistant(fork.pk, text_message("assistant", "yellow doors", "a2"), after="u1")
    assert (found("yellow", fork), found("blue", fork), found("green", fork)) == (["a2"], [], ["u3"])
    assert (found("yellow", origin), found("blue", origin)) == ([], ["a2"])


def test_what_only_a_fork_still_reaches_is_found_there(alice: User) -> None:
    origin = make_session("u: red keys", "a: blue keys", "u: green keys", owner_id=alice.pk, scope="origin")
    fork = services.fork_session(origin.pk, "a2", scope="fork")
    services.delete_session(origin.pk)
    for place in ({"owner_id": alice.pk}, {"scopes": ["fork"]}, {"session_id": fork.pk}):
        assert ids(search("keys", **place)) == ["a2", "u1"]
        assert {each.session_id for each in search("keys", **place).hits} == {fork.pk}
    services.delete_session(fork.pk)
    assert not MessageWords.objects.exists()


def test_a_deleted_owner_leaves_nothing_to_find(alice: User) -> None:
    make_session("u: keys", owner_id=alice.pk, scope="one")
    owner_id = alice.pk
    alice.delete()
    assert search("keys", owner_id=owner_id).hits == search("keys", scopes=["one"]).hits == []
    services.prune_unreached()
    assert not MessageWords.objects.exists()


def test_a_hit_reports_whether_it_is_on_the_shown_path(monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session("u: root", "a: first", "u: next")
    make_message(session, "second", role="assistant", after="u1", message_id="b")
    assert (hit("second", session).is_on_path, hit("second", session).leaf_id) == (True, "b")
    assert (hit("first", session).is_on_path, hit("first", session).leaf_id) == (False, None)
    assert (hit("root", session).is_on_path, hit("root", session).leaf_id) == (True, "b")
    assert hit("next", session).is_on_path is False
    services.select_leaf(session.pk, "a2")
    assert hit("first", session).leaf_id == "u3"
    monkeypatch.setattr(scoping, "MAX_STEPS", 1)
    assert hit("next", session).is_on_path is True
    assert (hit("root", session).is_on_path, hit("root", session).leaf_id) == (None, None)


def test_ranked_with_a_snippet_and_what_matches_in_it() -> None:
    session = make_session("u: keys", "a: keys and keys", "u: something else altogether", "a: the keys to my door")
    hits = search("key", session_id=session.pk).hits
    assert [each.message_id for each in hits] == ["a2", "u1", "a4"]
    assert [hits[2].snippet[low:high] for low, high in hits[2].highlights] == ["keys"]
    assert hits[0].role == "assistant"


def test_pages_have_every_hit_once_also_when_more_comes_in() -> None:
    session = make_session(*[f"u: keys number {number}" for number in range(7)])
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = search("keys", session_id=session.pk, limit=3, cursor=cursor)
        seen += [each.message_id for each in page.hits]
        cursor = page.next_cursor
        make_message(session, "keys")
        services.delete_message(session.pk, seen[0]) if len(seen) == 3 else None
    assert sorted(seen) == [f"u{number}" for number in range(1, 8)]


@pytest.mark.parametrize("cursor", ["x", "ü", "bnVsbA==", "WzEsMl0=", "WzEsMiwtM10=", "WzEsMiwiMyJd"])
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    with pytest.raises(CursorInvalid):
        search("keys", session_id=make_session("u: keys").pk, cursor=cursor)


def test_the_newest_matches_are_ranked_and_the_answer_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session("u: keys keys keys", "a: keys", "u: keys", "a: other")
    monkeypatch.setattr(search_query, "MAX_RANKED", 2)
    page = search("keys", session_id=session.pk)
    assert (ids(page), page.is_partial) == (["a2", "u3"], True)
    assert not search("other", session_id=session.pk).is_partial


def test_a_search_costs_the_same_queries_whatever_it_finds(alice: User) -> None:
    for number in range(3):
        session = make_session(*["u: keys"] * 10, "a: windows", owner_id=alice.pk, scope=f"s{number}")
    services.fork_session(session.pk, "u3", scope="fork")
    counts = []
    for query in ("windows", "keys"):
        for place in ({"session_id": session.pk}, {"owner_id": alice.pk}, {"scopes": ["s1", "fork"]}):
            with CaptureQueriesContext(connection) as captured:
                assert search(query, **place).hits
            counts.append(len(captured))
    assert max(counts) <= 11  # two of them PostgreSQL's estimates
    assert all("SAVEPOINT" not in query["sql"] for query in captured)


def test_writing_many_messages_indexes_them_in_one_query() -> None:
    session = make_session("u: hi")
    with CaptureQueriesContext(connection) as captured:
        services.append_messages(session.pk, [text_message("user", f"keys {number}") for number in range(9)])
    assert sum("messagewords" in query["sql"] for query in captured) == 1


def test_the_index_is_filled_again_and_goes_on_where_it_was() -> None:
    session = make_session("u: keys", "a: keys", "s: keys", "u: keys")
    services.queue_messages(session.pk, [text_message("user", "keys", "q")])
    rows = list(Message.objects.order_by("pk").values_list("pk", flat=True))
    MessageWords.objects.all().delete()
    assert found("keys", session) == []

    def rebuild(*options: str) -> str:
        out = StringIO()
        call_command("rebuild_search", *options, stdout=out)
        return out.getvalue()

    assert "indexed 2 messages" in rebuild("--after", str(rows[0]))
    assert found("keys", session) == ["a2", "u4"]
    assert "indexed 1 messages" in rebuild()
    assert found("keys", session) == ["a2", "u1", "u4"]
    MessageWords.objects.update(words="stale")
    assert "indexed 0 messages" in rebuild()
    assert "indexed 3 messages" in rebuild("--anew")
    assert found("keys", session) == ["a2", "u1", "u4"]


def test_triggers_that_a_change_of_the_table_lost_are_made_again() -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER think_sessions_messagewords_erased")
            cursor.execute("DROP TRIGGER think_sessions_messagewords_added")
    mend_index(connection.alias)
    session = make_session("u: keys")
    assert found("keys", session) == ["u1"]
    services.clear_session(session.pk)
    assert not MessageWords.objects.exists()


@pytest.mark.parametrize("text", [lambda n: f"{n}x" * 30, lambda n: chr(0x10400 + n % 40) * 60 + f"{n}"])
def test_the_longest_text_is_indexed(text: Callable[[int], str]) -> None:
    session = make_session("u: " + " ".join(["keys", *map(text, range(6_000))]))
    assert found("keys", session) == ["u1"]
