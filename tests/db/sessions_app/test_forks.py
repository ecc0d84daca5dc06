"""Forks share rows; clearing and deleting keep what a fork reaches and nothing else."""

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model

from sessions_app.core.messages import shapes
from sessions_app.core.messages.parts import Result, apply_result
from sessions_app.errors import MessageNotFound, MessageShared
from sessions_app.messages import selectors, services
from sessions_app.models import Message, Session
from sessions_app.testing import make_message, make_session, text_message

pytestmark = pytest.mark.django_db

Ids = Callable[[str], list[str]]


def answer(message_id: str, text: str = "hello") -> shapes.Message:
    return text_message("assistant", text, message_id)


def all_ids() -> list[str]:
    return sorted(Message.objects.values_list("message_id", flat=True))


@pytest.fixture
def origin() -> Session:
    return make_session("u: one", "a: two", "u: three", "a: four", scope="s", name="origin")


def test_a_fork_has_the_path_up_to_its_point_and_the_original_stays(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2", name="fork")
    assert path(fork.pk) == ["u1", "a2"]
    assert path(origin.pk) == ["u1", "a2", "u3", "a4"]
    assert Message.objects.count() == 4
    assert (fork.parent_id, fork.scope, fork.name, fork.owner_id) == (origin.pk, "s", "fork", None)


def test_both_go_on_alone(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2")
    make_message(fork, message_id="f3")
    make_message(origin, message_id="o5")
    assert path(fork.pk) == ["u1", "a2", "f3"]
    assert path(origin.pk) == ["u1", "a2", "u3", "a4", "o5"]
    assert selectors.count_path(fork.pk) == 3


def test_ids_are_found_by_the_path_that_is_shared(origin: Session) -> None:
    fork = services.fork_session(origin.pk, "a2")
    assert set(selectors.find_messages(fork.pk, ["u1", "a2", "u3", "a4", "unknown"])) == {"u1", "a2"}
    assert selectors.get_message(fork.pk, "u3") is None
    assert selectors.is_on_path(fork.pk, "u1")
    assert selectors.answered(fork.pk, ["u1"]) == {"u1"}
    assert not selectors.is_elsewhere(fork.pk, "u1")


def test_a_shared_id_is_not_stored_again(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2")
    services.append_messages(fork.pk, [text_message("user", "changed", "u1")])
    services.append_messages(fork.pk, [text_message("user", "its own now", "u3")])
    assert path(fork.pk) == ["u1", "a2", "u3"]
    assert Message.objects.count() == 5


def test_siblings_of_the_origin_are_no_branches_of_the_fork(origin: Session) -> None:
    services.put_assistant(origin.pk, answer("b2"), after="u1")
    fork = services.fork_session(origin.pk, "a2")
    assert selectors.siblings(fork.pk, ["u1", "a2"]) == {"u1": ["u1"], "a2": ["a2"]}
    assert [m.id for m in selectors.branches(fork.pk, "a2")] == []
    make_message(fork, after="u1", role="assistant", message_id="f2")
    assert selectors.siblings(fork.pk, ["a2", "f2"]) == {"a2": ["a2", "f2"], "f2": ["a2", "f2"]}
    assert selectors.siblings(origin.pk, ["a2"]) == {"a2": ["a2", "b2"]}


def test_a_new_root_of_a_fork_stands_beside_the_shared_one(origin: Session) -> None:
    make_message(origin, after=None, message_id="r1")
    fork = services.fork_session(origin.pk, "a2")
    make_message(fork, after=None, message_id="f1")
    assert selectors.siblings(fork.pk, ["f1", "u1"]) == {"u1": ["u1", "f1"], "f1": ["u1", "f1"]}
    assert selectors.siblings(origin.pk, ["u1"]) == {"u1": ["u1", "r1"]}


def test_choosing_a_branch_in_a_fork_stays_in_the_fork(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "u3")
    assert services.select_leaf(fork.pk, "u1") == "u3"
    make_message(fork, after="a2", message_id="f3")
    assert services.select_leaf(fork.pk, "u1") == "f3"
    assert services.select_leaf(fork.pk, "u3") == "u3"
    assert services.select_leaf(origin.pk, "u1") == "a4"
    with pytest.raises(MessageNotFound):
        services.select_leaf(fork.pk, "a4")


def test_clearing_keeps_what_a_fork_reaches(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2")
    make_message(fork, message_id="f3")
    services.queue_messages(origin.pk, [text_message("user", "queued", "q1")])
    services.clear_session(origin.pk)
    assert path(origin.pk) == []
    assert selectors.window(origin.pk) == []
    assert path(fork.pk) == ["u1", "a2", "f3"]
    assert all_ids() == ["a2", "f3", "u1"]
    make_message(origin, message_id="u1")
    assert path(origin.pk) == ["u1"]
    assert path(fork.pk) == ["u1", "a2", "f3"]


def test_a_branch_that_the_fork_left_is_still_its_own(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2")
    make_message(fork, after=None, message_id="f1")
    services.clear_session(origin.pk)
    assert path(fork.pk) == ["f1"]
    assert services.select_leaf(fork.pk, "u1") == "a2"
    assert path(fork.pk) == ["u1", "a2"]


def test_deleting_the_origin_keeps_the_fork(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "u3")
    services.delete_session(origin.pk)
    assert not Session.objects.filter(pk=origin.pk).exists()
    assert path(fork.pk) == ["u1", "a2", "u3"]
    assert all_ids() == ["a2", "u1", "u3"]
    fork.refresh_from_db()
    assert fork.parent_id is None


def test_the_last_fork_takes_the_shared_rows_along(origin: Session) -> None:
    first = services.fork_session(origin.pk, "u3")
    second = services.fork_session(origin.pk, "a2")
    services.delete_session(origin.pk)
    services.delete_session(first.pk)
    assert all_ids() == ["a2", "u1"]
    services.clear_session(second.pk)
    assert all_ids() == []


def test_clearing_a_fork_removes_its_own_leftovers_whatever_else_waits_to_be_pruned(origin: Session) -> None:
    Session.objects.filter(pk=make_session("u: litter").pk).delete()
    fork = services.fork_session(origin.pk, "a2")
    services.delete_session(origin.pk)
    services.delete_session(fork.pk)
    assert all_ids() == ["u1"]
    assert Message.objects.get().content["parts"][0]["text"] == "litter"


def test_deleting_a_fork_leaves_the_origin_alone(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2")
    make_message(fork, message_id="f3")
    services.delete_session(fork.pk)
    assert path(origin.pk) == ["u1", "a2", "u3", "a4"]
    assert all_ids() == ["a2", "a4", "u1", "u3"]


def test_forks_of_forks_outlive_those_between(origin: Session, path: Ids) -> None:
    middle = services.fork_session(origin.pk, "a2")
    make_message(middle, message_id="m3")
    make_message(middle, message_id="m4")
    last = services.fork_session(middle.pk, "m3")
    make_message(last, message_id="l4")
    services.delete_session(middle.pk)
    services.clear_session(origin.pk)
    assert path(last.pk) == ["u1", "a2", "m3", "l4"]
    assert all_ids() == ["a2", "l4", "m3", "u1"]
    assert set(selectors.find_messages(last.pk, ["u1", "a2", "m3", "m4", "l4"])) == {"u1", "a2", "m3", "l4"}
    services.delete_session(last.pk)
    assert all_ids() == []


def test_a_long_session_is_cleared_without_recursion() -> None:
    session = make_session()
    rows, parent = [], None
    for number in range(5000):
        row = Message(pk=number + 1_000_000, session=session, message_id=f"m{number}", parent_id=parent, depth=number)
        row.role, row.content, row.placed_at = "user", {"parts": []}, session.created_at
        rows.append(row)
        parent = row.pk
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(active_leaf_id=parent)
    fork = services.fork_session(session.pk, "m2500")
    services.clear_session(session.pk)
    assert Message.objects.count() == 2501
    services.delete_session(fork.pk)
    assert Message.objects.count() == 0


def test_an_open_call_is_copied_into_the_fork(path: Ids) -> None:
    origin = make_session("u: hi")
    call: shapes.Part = {"type": "tool-t", "toolCallId": "c1", "state": "input-available", "input": {}}
    make_message(origin, role="assistant", message_id="a1", parts=[call])
    fork = services.fork_session(origin.pk, "a1")
    assert path(fork.pk) == ["u1", "a1"]
    services.update_message(origin.pk, "a1", lambda m: apply_result(m, "c1", Result(output="origin")))
    assert selectors.find_messages(fork.pk, ["a1"])["a1"].parts[0]["state"] == "input-available"
    services.update_message(fork.pk, "a1", lambda m: apply_result(m, "c1", Result(output="fork")))
    assert selectors.find_messages(origin.pk, ["a1"])["a1"].parts[0]["output"] == "origin"


def test_changing_a_shared_message_copies_it_first(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "u3")
    make_message(fork, message_id="f4")
    make_message(fork, after="a2", message_id="g3")
    services.put_assistant(fork.pk, answer("a2", "changed"), after=None)
    assert path(fork.pk) == ["u1", "a2", "g3"]
    services.select_leaf(fork.pk, "f4")
    assert path(fork.pk) == ["u1", "a2", "u3", "f4"]
    assert selectors.find_messages(fork.pk, ["a2"])["a2"].parts[0]["text"] == "changed"
    assert selectors.find_messages(origin.pk, ["a2"])["a2"].parts[0]["text"] == "two"
    assert path(origin.pk) == ["u1", "a2", "u3", "a4"]
    services.delete_session(origin.pk)
    assert path(fork.pk) == ["u1", "a2", "u3", "f4"]
    assert all_ids() == ["a2", "f4", "g3", "u1", "u3"]


# Deleting one message


def test_deleting_a_message_reparents_its_children(origin: Session, path: Ids) -> None:
    services.put_assistant(origin.pk, answer("b4"), after="u3")
    services.delete_message(origin.pk, "a2")
    assert path(origin.pk) == ["u1", "u3", "b4"]
    found = selectors.find_messages(origin.pk, ["u3", "a4", "b4"])
    assert [(m.parent_id, m.depth) for m in found.values()] == [("u1", 1), ("u3", 2), ("u3", 2)]
    services.delete_message(origin.pk, "u1")
    assert path(origin.pk) == ["u3", "b4"]
    assert selectors.count_path(origin.pk) == 2


def test_deleting_the_leaf_shows_its_parent(origin: Session, path: Ids) -> None:
    services.delete_message(origin.pk, "a4")
    assert path(origin.pk) == ["u1", "a2", "u3"]


def test_deleting_the_only_message_leaves_an_empty_session(path: Ids) -> None:
    session = make_session("u: hi")
    services.delete_message(session.pk, "u1")
    assert path(session.pk) == []
    make_message(session, message_id="n1")
    assert path(session.pk) == ["n1"]


def test_deleting_a_queued_message_leaves_the_rest(origin: Session, path: Ids) -> None:
    services.queue_messages(origin.pk, [text_message("user", "a", "q1"), text_message("user", "b", "q2")])
    services.delete_message(origin.pk, "q1")
    assert [m.id for m in selectors.queued(origin.pk)] == ["q2"]
    assert path(origin.pk) == ["u1", "a2", "u3", "a4"]


def test_a_message_that_a_fork_reaches_is_not_deleted_alone(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "u3")
    make_message(fork, message_id="f4")
    for session_id, message_id in [(origin.pk, "u1"), (origin.pk, "u3"), (fork.pk, "u1"), (fork.pk, "u3")]:
        with pytest.raises(MessageShared):
            services.delete_message(session_id, message_id)
    services.delete_message(origin.pk, "a4")
    services.delete_message(fork.pk, "f4")
    assert path(fork.pk) == path(origin.pk) == ["u1", "a2", "u3"]


# What no one reaches


def test_rows_of_a_deleted_user_are_pruned() -> None:
    alice = get_user_model().objects.create_user("alice")
    session = make_session("u: hi", "a: hello", owner_id=alice.pk)
    services.put_assistant(session.pk, answer("b2"), after="u1")
    services.queue_messages(session.pk, [text_message("user", "queued", "q1")])
    kept = make_session("u: stays")
    alice.delete()
    assert len(all_ids()) == 5
    pruned = [services.prune_unreached(limit=10) for _ in range(3)]
    assert sum(pruned) == 4
    assert pruned[-1] == 0
    assert selectors.count_path(kept.pk) == 1


def test_pruning_keeps_what_a_fork_reaches(origin: Session, path: Ids) -> None:
    fork = services.fork_session(origin.pk, "a2")
    Session.objects.filter(pk=origin.pk).delete()  # as a cascade does, past the services
    services.prune_unreached()
    assert path(fork.pk) == ["u1", "a2"]
    assert all_ids() == ["a2", "u1"]
