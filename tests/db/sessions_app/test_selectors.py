"""Reading conversations: pages, windows, branches, and what they cost."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors, services
from sessions_app.messages.services import Leaf
from sessions_app.models import Message, Session
from sessions_app.queries import PathBounds
from sessions_app.testing import make_message, make_session, text_message

pytestmark = pytest.mark.django_db

Queries = Callable[..., Any]


def ids(messages: list[StoredMessage]) -> list[str]:
    return [message.id for message in messages]


def long_session(exchanges: int) -> Session:
    return make_session(*["u: question", "a: answer"] * exchanges)


def test_history_is_read_from_each_leaf() -> None:
    session = make_session("u: hi", "a: first")
    services.put_assistant(session.pk, text_message("assistant", "second", "b2"), after="u1")
    assert ids(selectors.path_page(session.pk, leaf="a2").messages) == ["u1", "a2"]
    assert ids(selectors.path_page(session.pk, leaf="b2").messages) == ["u1", "b2"]
    assert selectors.newest_leaf(session.pk, "u1") == "b2"
    assert ids(selectors.branches(session.pk, "u1")) == ["a2", "b2"]
    assert selectors.branches(session.pk, "unknown") == []


def test_a_message_comes_back_whole() -> None:
    session = make_session("u: hi")
    message: shapes.Message = {**text_message("assistant", "hello", "a1"), "metadata": {"k": [1]}}
    services.put_assistant(session.pk, message, after="u1", turn_id="t1")
    stored = selectors.get_message(session.pk, "a1")
    row = Message.objects.get(message_id="a1")
    assert stored is not None
    assert stored.to_ui() == message
    assert (stored.parent_id, stored.depth, stored.turn_id, stored.placed) == ("u1", 1, "t1", True)
    assert (stored.created_at, stored.change_seq) == (row.created_at, 2)
    assert "metadata" not in selectors.find_messages(session.pk, ["u1"])["u1"].to_ui()


def test_a_history_for_the_model_is_what_the_orm_reads() -> None:
    session = make_session("u: hi", "a: hello", "u: more")
    text = "nul \0, lone \ud800, big 😀"
    odd: shapes.Message = {**text_message("assistant", text, "a4"), "metadata": {"k": [1, None]}}
    call: shapes.Part = {"type": "tool-t", "toolCallId": "c1", "state": "output-available", "input": {}, "output": [1]}
    odd["parts"].append(call)
    services.put_assistant(session.pk, odd, after="u3", turn_id="t1")
    services.prune_outputs(session.pk, {"a4": ["c1"]})
    for message_id, second in (("u1", "07.000000"), ("a2", "07.500000"), ("u3", "59.000001")):
        Message.objects.filter(message_id=message_id).update(created_at=f"2026-03-29T02:30:{second}Z")
    fork = services.fork_session(session.pk, "u3").pk
    services.put_assistant(fork, text_message("assistant", "elsewhere", "a5"), after="u3")
    for sid, path in ((session.pk, ["u1", "a2", "u3", "a4"]), (fork, ["u1", "a2", "u3", "a5"])):
        history = selectors.model_history(sid)
        assert history == list(selectors.find_messages(sid, path).values())
        assert ids(history) == path
    assert selectors.model_history(session.pk)[-1].pruned_calls == ("c1",)


def test_no_model_object_is_made_for_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    session = long_session(20)
    made: list[Any] = []
    monkeypatch.setattr(Message, "__init__", lambda self, *values, **named: made.append(values))
    assert len(selectors.model_history(session.pk)) == 40
    assert made == []


def test_pages_join_into_the_whole_path() -> None:
    session = long_session(6)
    newest = selectors.path_page(session.pk, limit=5)
    middle = selectors.path_page(session.pk, before=newest.messages[0].id, limit=5)
    oldest = selectors.path_page(session.pk, before=middle.messages[0].id, limit=5)
    joined = ids([*oldest.messages, *middle.messages, *newest.messages])
    assert joined == ids(selectors.path_page(session.pk, limit=50).messages)
    assert [page.has_more for page in (newest, middle, oldest)] == [True, True, False]
    assert {page.leaf_id for page in (newest, middle, oldest)} == {"a12"}
    assert selectors.path_page(session.pk, before="u1").messages == []


def test_a_page_of_a_named_leaf_carries_the_leaf() -> None:
    session = long_session(3)
    page = selectors.path_page(session.pk, leaf="a4", before="u3")
    assert (ids(page.messages), page.leaf_id) == (["u1", "a2"], "a4")


def around(session: Session, message_id: str, above: int, below: int) -> tuple[list[str], bool, bool, str | None]:
    page = selectors.page_around(session.pk, message_id, above=above, below=below)
    return ids(page.messages), page.has_more, page.has_newer, page.leaf_id


def test_a_page_around_a_message() -> None:
    session = long_session(4)
    assert around(session, "u5", 1, 1) == (["a4", "u5", "a6"], True, True, "a8")
    assert around(session, "u1", 3, 9) == (["u1", "a2", "u3", "a4", "u5", "a6", "u7", "a8"], False, False, "a8")
    assert around(session, "a8", 0, 9) == (["a8"], True, False, "a8")
    assert around(session, "a2", 1, 6)[1:3] == (False, False)
    with pytest.raises(MessageNotFound):
        around(session, "unknown", 1, 1)


def test_a_page_around_a_message_beside_the_shown_path_goes_down_its_own_branch() -> None:
    session = long_session(3)
    make_message(session, "another", role="assistant", after="u3", message_id="b4")
    make_message(session, "more", after="b4", message_id="b5")
    services.select_leaf(session.pk, "a6")
    assert around(session, "b4", 2, 2) == (["a2", "u3", "b4", "b5"], True, False, "b5")
    fork = services.fork_session(session.pk, "b4")
    assert around(fork, "u3", 1, 5) == (["a2", "u3", "b4"], True, False, "b4")


def test_a_page_around_an_archived_message_is_given_with_what_lies_below() -> None:
    session = long_session(3)
    services.archive_beyond(session.pk, 2)
    assert around(session, "u3", 5, 1) == (["u3", "a4"], False, True, "a6")


def test_an_empty_session_has_an_empty_page() -> None:
    session = make_session()
    page = selectors.path_page(session.pk)
    assert (page.messages, page.has_more, page.leaf_id) == ([], False, None)
    assert selectors.path_page(session.pk, leaf=None).messages == []
    assert selectors.window(session.pk) == []
    assert selectors.model_history(session.pk, leaf=None) == []
    assert selectors.count_path(session.pk) == 0
    assert selectors.count_path("unknown") == 0


def test_unknown_and_queued_places_are_errors() -> None:
    session = make_session("u: hi")
    services.queue_messages(session.pk, [text_message("user", "later", "q1")])
    for place in ("unknown", "q1", "", "\0"):
        with pytest.raises(MessageNotFound):
            selectors.path_page(session.pk, before=place)
        with pytest.raises(MessageNotFound):
            selectors.model_history(session.pk, leaf=place)


def test_a_page_is_never_larger_than_500() -> None:
    session = long_session(251)
    assert len(selectors.path_page(session.pk, limit=10_000).messages) == 500
    assert len(selectors.path_page(session.pk, limit=-3).messages) == 1


def test_impossible_ids_are_just_not_found() -> None:
    session = make_session("u: hi")
    bad: list[Any] = ["u1", "", "\0", "\ud800", "x" * 200, 3, None]
    assert list(selectors.find_messages(session.pk, bad)) == ["u1"]
    assert selectors.find_messages(session.pk, []) == {}
    assert selectors.siblings(session.pk, bad) == {"u1": ["u1"]}
    assert selectors.answered(session.pk, ["\0"]) == set()
    assert not selectors.is_on_path(session.pk, "\0")
    assert not selectors.is_elsewhere(session.pk, "\0")
    assert selectors.newest_leaf(session.pk, "\0") is None


def test_a_large_array_of_ids_is_looked_up_in_parts() -> None:
    session = make_session("u: hi", "a: hello")
    many = [f"m{index}" for index in range(12_000)]
    assert set(selectors.find_messages(session.pk, ["u1", *many, "a2"])) == {"u1", "a2"}


# The window


def test_the_window_ends_with_the_queue() -> None:
    session = make_session("u: hi", "a: hello")
    services.queue_messages(session.pk, [text_message("user", "later", "q1"), text_message("user", "last", "q0")])
    assert [(m.id, m.placed) for m in selectors.window(session.pk)] == [
        ("u1", True),
        ("a2", True),
        ("q1", False),
        ("q0", False),
    ]


def test_the_window_starts_at_a_users_message() -> None:
    session = long_session(5)
    assert ids(selectors.window(session.pk, max_messages=4)) == ["u7", "a8", "u9", "a10"]
    assert ids(selectors.window(session.pk, max_messages=5)) == ["u7", "a8", "u9", "a10"]


def test_the_window_never_begins_with_an_answer_to_a_call() -> None:
    session = make_session("u: hi", "a: one")
    for number in range(3):  # an answer, and what went on after a browser's result
        make_message(session, role="assistant", message_id=f"c{number}")
    make_message(session, message_id="next")
    assert ids(selectors.window(session.pk, max_messages=3)) == ["next"]


def test_a_window_that_holds_the_root_keeps_it() -> None:
    session = make_session("a: welcome", "u: hi", "a: hello")
    assert ids(selectors.window(session.pk)) == ["a1", "u2", "a3"]
    assert ids(selectors.window(session.pk, max_messages=2)) == ["u2", "a3"]


def test_the_window_keeps_to_its_bytes() -> None:
    session = make_session()
    for number in range(6):
        make_message(session, "x" * 1000, message_id=f"u{number}")
        make_message(session, "y" * 1000, role="assistant", message_id=f"a{number}")
    assert ids(selectors.window(session.pk, max_bytes=4500)) == ["u4", "a4", "u5", "a5"]
    assert ids(selectors.window(session.pk, max_bytes=3500)) == ["u5", "a5"]


def test_the_newest_exchange_is_given_whole() -> None:
    session = make_session("u: old", "a: old")
    make_message(session, "q" * 3000, message_id="u")
    make_message(session, "x" * 3000, role="assistant", message_id="a")
    assert ids(selectors.window(session.pk, max_bytes=1000)) == ["u", "a"]


def test_one_huge_exchange_is_still_bounded() -> None:
    session = make_session("u: hi")
    for number in range(12):
        make_message(session, "x" * 1000, role="assistant", message_id=f"a{number}")
    shown = ids(selectors.window(session.pk, max_bytes=1000))
    assert shown == [f"a{number}" for number in range(5, 12)]
    assert ids(selectors.window(session.pk, max_bytes=0)) == ["a11"]


def test_the_models_history_is_the_tail_of_a_named_path() -> None:
    session = long_session(4)
    assert ids(selectors.model_history(session.pk, leaf="u5")) == ["u1", "a2", "u3", "a4", "u5"]
    assert ids(selectors.model_history(session.pk, leaf="u5", max_messages=2)) == ["u5"]
    assert ids(selectors.model_history(session.pk, leaf=Leaf.ACTIVE, max_messages=2)) == ["u7", "a8"]


# Branches


def test_siblings_are_oldest_first_and_include_the_message() -> None:
    session = make_session("u: hi", "a: one", "u: more")
    services.put_assistant(session.pk, text_message("assistant", "two", "b2"), after="u1")
    services.append_messages(session.pk, [text_message("user", "edited", "r1")], after=None)
    services.queue_messages(session.pk, [text_message("user", "queued", "q1")])
    assert selectors.siblings(session.pk, ["u1", "b2", "u3", "q1", "unknown"]) == {
        "u1": ["u1", "r1"],
        "b2": ["a2", "b2"],
        "u3": ["u3"],
    }


def test_siblings_of_another_session_are_not_mixed_in() -> None:
    first, second = make_session("u: one"), make_session("u: two")
    assert selectors.siblings(first.pk, ["u1"]) == {"u1": ["u1"]}
    assert selectors.siblings(second.pk, ["u1"]) == {"u1": ["u1"]}


def test_is_on_path_distinguishes_branches() -> None:
    session = make_session("u: hi", "a: one", "u: more")
    services.put_assistant(session.pk, text_message("assistant", "two", "b2"), after="u1")
    services.queue_messages(session.pk, [text_message("user", "queued", "q1")])
    assert selectors.is_on_path(session.pk, "u1")
    assert selectors.is_on_path(session.pk, "b2")
    assert not selectors.is_on_path(session.pk, "a2")
    assert selectors.is_on_path(session.pk, "a2", leaf="u3")
    assert not selectors.is_on_path(session.pk, "u3", leaf="a2")
    assert not selectors.is_on_path(session.pk, "q1")


def test_answered_finds_the_questions_with_an_answer() -> None:
    session = make_session("u: hi", "a: one", "u: more")
    make_message(session, after="u3", message_id="u4")
    assert selectors.answered(session.pk, ["u1", "a2", "u3", "u4", "unknown"]) == {"u1"}


def test_is_elsewhere_knows_the_owners_sessions_alone(django_user_model: Any) -> None:
    alice = django_user_model.objects.create_user("alice")
    bob = django_user_model.objects.create_user("bob")
    here = make_session("u: hi", owner_id=alice.pk)
    there = make_session(owner_id=alice.pk)
    make_message(there, message_id="mine")
    make_message(make_session(owner_id=bob.pk), message_id="bobs")
    assert selectors.is_elsewhere(here.pk, "mine")
    assert not selectors.is_elsewhere(here.pk, "bobs")
    assert not selectors.is_elsewhere(here.pk, "u1")
    assert not selectors.is_elsewhere(make_session().pk, "mine")


def test_count_is_the_length_of_the_shown_path() -> None:
    session = make_session("u: hi", "a: one", "u: more")
    assert selectors.count_path(session.pk) == 3
    services.put_assistant(session.pk, text_message("assistant", "two", "b2"), after="u1")
    assert selectors.count_path(session.pk) == 2


# What it costs


def test_each_selector_costs_its_queries_and_no_transaction(django_assert_num_queries: Queries) -> None:
    session = long_session(30)
    sid, some = session.pk, [f"u{n}" for n in range(1, 60, 2)]
    calls: list[tuple[int, Callable[[], object]]] = [
        (1, lambda: selectors.get_message(sid, "u1")),
        (1, lambda: selectors.find_messages(sid, [*some, "unknown"])),
        (1, lambda: selectors.path_page(sid)),
        (2, lambda: selectors.path_page(sid, leaf="u5")),
        (2, lambda: selectors.path_page(sid, before="u41")),
        (2, lambda: selectors.window(sid)),
        (1, lambda: selectors.model_history(sid)),
        (2, lambda: selectors.model_history(sid, leaf="u41")),
        (1, lambda: selectors.queued(sid)),
        (2, lambda: selectors.siblings(sid, some)),
        (2, lambda: selectors.answered(sid, some)),
        (2, lambda: selectors.branches(sid, "u5")),
        (2, lambda: selectors.is_on_path(sid, "u5")),
        (1, lambda: selectors.count_path(sid)),
        (2, lambda: selectors.newest_leaf(sid, "u5")),
        (3, lambda: selectors.page_around(sid, "u31", above=5, below=5)),
    ]
    for count, call in calls:
        with django_assert_num_queries(count) as captured:
            call()
        assert all(
            query["sql"].lstrip("( \n").startswith(("SELECT", "WITH RECURSIVE")) for query in captured.captured_queries
        )


def test_writing_costs_the_same_in_a_long_session() -> None:
    counts = []
    for session in (make_session("u: hi", "a: hello"), long_session(40)):
        with CaptureQueriesContext(connection) as captured:
            services.append_messages(session.pk, [text_message("user", "next", "n1")])
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 10


def plan_of(query: Any) -> str:
    return str(query.explain())


def test_the_walks_use_their_indexes() -> None:
    session = long_session(2)
    walks = {
        "named": Message.objects.named(session.pk, ["u1", "a2"]),
        "tail": Message.objects.tail(session.pk, None, PathBounds(max_messages=5)),
        "queue": Message.objects.queue_of(session.pk),
        "leaves": Message.objects.leaves_below(session.pk, 1),
        "path": Message.objects.on_path(session.pk, None, 0),
    }
    if connection.vendor != "sqlite":
        pytest.skip("on a table of four rows PostgreSQL rightly scans; the benchmark covers it")
    for name, query in walks.items():
        plan = plan_of(query)
        assert "SCAN m" not in plan, f"{name}: {plan}"
        assert "SCAN think_sessions" not in plan, f"{name}: {plan}"
        assert "think_message_changes" not in plan, f"{name} walks the whole session: {plan}"
