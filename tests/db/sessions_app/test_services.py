"""Writing conversations: where messages go, what repeats do, what changes and what does not."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from sessions_app.core.messages import shapes
from sessions_app.core.messages.parts import Approval, Result, apply_approval, apply_result
from sessions_app.errors import MessageInvalid, MessageNotFound, SessionNotFound
from sessions_app.messages import selectors, services
from sessions_app.messages.services import Leaf
from sessions_app.models import Message, Session
from sessions_app.testing import history_of, make_message, make_session, text_message

pytestmark = pytest.mark.django_db

Ids = Callable[[str], list[str]]
Seq = Callable[[str], int]

EMPTY: shapes.Content = {"parts": []}


def user(message_id: str, text: str = "hi") -> shapes.Message:
    return text_message("user", text, message_id)


def answer(message_id: str, text: str = "hello") -> shapes.Message:
    return text_message("assistant", text, message_id)


def text_of(session_id: str, message_id: str) -> str:
    stored = selectors.get_message(session_id, message_id)
    assert stored is not None
    return str(stored.parts[0]["text"])


def test_two_turns_accumulate_on_one_path(path: Ids) -> None:
    session = make_session("u: one", "a: first", "u: two", "a: second")
    assert path(session.pk) == ["u1", "a2", "u3", "a4"]
    assert [m.role for m in selectors.window(session.pk)] == ["user", "assistant", "user", "assistant"]


def test_duplicate_user_id_keeps_the_first_content(path: Ids, change_seq: Seq) -> None:
    session = make_session("u: A")
    before = change_seq(session.pk)
    assert services.append_messages(session.pk, [user("u1", "B")]) == ["u1"]
    assert services.queue_messages(session.pk, [user("u1", "C"), user("u1", "D")]) == ["u1"]
    assert text_of(session.pk, "u1") == "A"
    assert Message.objects.count() == 1
    assert change_seq(session.pk) == before


def test_duplicates_within_one_call_are_one_message(path: Ids) -> None:
    session = make_session()
    assert services.append_messages(session.pk, [user("u1", "A"), user("u1", "B"), answer("a1")]) == ["u1", "a1"]
    assert services.queue_messages(session.pk, [user("q1", "A"), user("q1", "B")]) == ["q1"]
    assert path(session.pk) == ["u1", "a1"]
    assert text_of(session.pk, "q1") == "A"


def test_queued_messages_have_no_place(path: Ids) -> None:
    session = make_session("u: hi", "a: hello")
    assert services.queue_messages(session.pk, [user("q1"), user("q2")], turn_id="t1") == ["q1", "q2"]
    assert path(session.pk) == ["u1", "a2"]
    queue = selectors.queued(session.pk)
    assert [(m.id, m.placed, m.parent_id, m.turn_id) for m in queue] == [
        ("q1", False, None, "t1"),
        ("q2", False, None, "t1"),
    ]


def test_the_queue_keeps_the_order_of_acceptance() -> None:
    session = make_session()
    for ids in (["z"], ["b", "a"], ["c"]):
        services.queue_messages(session.pk, [user(i) for i in ids])
    assert [m.id for m in selectors.queued(session.pk)] == ["z", "b", "a", "c"]


def test_placing_gives_parent_and_depth_and_shows_the_message(path: Ids) -> None:
    session = make_session("u: hi", "a: hello")
    services.queue_messages(session.pk, [user("q1"), user("q2")])
    assert services.place_messages(session.pk, ["q1", "q2"], after=Leaf.ACTIVE) == "q2"
    assert path(session.pk) == ["u1", "a2", "q1", "q2"]
    placed = selectors.find_messages(session.pk, ["q1", "q2"])
    assert [(m.parent_id, m.depth, m.placed, m.queued_position) for m in placed.values()] == [
        ("a2", 2, True, None),
        ("q1", 3, True, None),
    ]
    assert selectors.queued(session.pk) == []


def test_turns_that_were_queued_alternate_whatever_came_when(path: Ids) -> None:
    session = make_session()
    services.queue_messages(session.pk, [user("u1")])
    services.queue_messages(session.pk, [user("u2")])
    services.place_messages(session.pk, ["u1"], after=Leaf.ACTIVE)
    services.put_assistant(session.pk, answer("a1"), after="u1")
    services.place_messages(session.pk, ["u2"], after=Leaf.ACTIVE)
    services.put_assistant(session.pk, answer("a2"), after="u2")
    assert path(session.pk) == ["u1", "a1", "u2", "a2"]


def test_placing_twice_changes_nothing(path: Ids, change_seq: Seq) -> None:
    session = make_session("u: hi")
    services.queue_messages(session.pk, [user("q1")])
    services.place_messages(session.pk, ["q1"], after=Leaf.ACTIVE)
    services.put_assistant(session.pk, answer("a1"), after="q1")
    before = change_seq(session.pk)
    assert services.place_messages(session.pk, ["q1"], after="u1") == "q1"
    assert path(session.pk) == ["u1", "q1", "a1"]
    assert change_seq(session.pk) == before


def test_placing_skips_what_has_a_place(path: Ids) -> None:
    session = make_session("u: hi", "a: hello")
    services.queue_messages(session.pk, [user("q1")])
    assert services.place_messages(session.pk, ["u1", "q1", "q1"], after=Leaf.ACTIVE) == "q1"
    assert path(session.pk) == ["u1", "a2", "q1"]


def test_placing_nothing_shows_where_the_turn_stands(path: Ids, change_seq: Seq) -> None:
    session = make_session("u: hi", "a: hello")
    before = change_seq(session.pk)
    assert services.place_messages(session.pk, [], after=Leaf.ACTIVE) == "a2"
    assert change_seq(session.pk) == before
    assert services.place_messages(session.pk, [], after="u1") == "u1"
    assert path(session.pk) == ["u1"]
    assert services.place_messages(make_session().pk, [], after=Leaf.ACTIVE) is None


def test_an_explicit_none_makes_a_new_root(path: Ids) -> None:
    session = make_session("u: hi", "a: hello")
    services.append_messages(session.pk, [user("u9")], after=None)
    assert path(session.pk) == ["u9"]
    assert selectors.siblings(session.pk, ["u9"]) == {"u9": ["u1", "u9"]}


@pytest.mark.parametrize(
    "write",
    [
        lambda s: services.append_messages(s, [user("n1"), user("n2")], after="unknown"),
        lambda s: services.put_assistant(s, answer("n1"), after="unknown"),
        lambda s: services.place_messages(s, ["q1"], after="unknown"),
        lambda s: services.place_messages(s, ["q1", "unknown"], after=Leaf.ACTIVE),
        lambda s: services.place_messages(s, [], after="unknown"),
        lambda s: services.append_messages(s, [user("n1")], after="q1"),
        lambda s: services.append_messages(s, [user("n1")], after="\0"),
        lambda s: services.select_leaf(s, "unknown"),
        lambda s: services.select_leaf(s, "q1"),
        lambda s: services.update_message(s, "unknown", lambda m: m),
        lambda s: services.delete_message(s, "unknown"),
        lambda s: services.fork_session(s, "unknown"),
        lambda s: services.fork_session(s, "q1"),
    ],
)
def test_an_unknown_place_writes_nothing(write: Callable[[str], object], change_seq: Seq) -> None:
    session = make_session("u: hi")
    make_session("u: of another", name="other")
    services.queue_messages(session.pk, [user("q1")])
    before = (change_seq(session.pk), list(Message.objects.order_by("pk").values()), Session.objects.count())
    with pytest.raises(MessageNotFound):
        write(session.pk)
    assert before == (change_seq(session.pk), list(Message.objects.order_by("pk").values()), Session.objects.count())


def test_a_message_of_another_session_is_unknown_here() -> None:
    other = make_session()
    make_message(other, message_id="theirs")
    with pytest.raises(MessageNotFound):
        services.append_messages(make_session("u: hi").pk, [user("n")], after="theirs")


@pytest.mark.parametrize(
    "write",
    [
        lambda s: services.append_messages(s, [user("n1")]),
        lambda s: services.queue_messages(s, [user("n1")]),
        lambda s: services.clear_session(s),
        lambda s: services.delete_session(s),
        lambda s: services.rename_session(s, "x"),
    ],
)
def test_an_unknown_session_is_an_error(write: Callable[[str], object]) -> None:
    with pytest.raises(SessionNotFound):
        write("ses_unknown")


def test_assistant_rows_are_replaced_in_place(path: Ids) -> None:
    session = make_session("u: hi")
    assert services.put_assistant(session.pk, answer("a1", "half"), after="u1", turn_id="t")
    services.append_messages(session.pk, [user("u2")])
    assert services.put_assistant(session.pk, answer("a1", "whole"), after=None)
    assert path(session.pk) == ["u1", "a1", "u2"]
    assert text_of(session.pk, "a1") == "whole"
    assert services.append_messages(session.pk, [answer("a1", "again")]) == ["a1"]
    assert text_of(session.pk, "a1") == "again"
    assert path(session.pk) == ["u1", "a1", "u2"]


def test_an_unchanged_answer_is_not_written(change_seq: Seq) -> None:
    session = make_session("u: hi")
    assert services.put_assistant(session.pk, answer("a1"), after="u1")
    row, before = Message.objects.get(message_id="a1"), change_seq(session.pk)
    assert not services.put_assistant(session.pk, answer("a1"), after="u1")
    assert change_seq(session.pk) == before
    assert Message.objects.get(message_id="a1").updated_at == row.updated_at


def test_an_answer_without_parts_is_never_stored(change_seq: Seq) -> None:
    session = make_session("u: hi")
    before = change_seq(session.pk)
    blank: shapes.Message = {"id": "a1", "role": "assistant", "parts": [{"type": "reasoning", "text": " "}]}
    assert not services.put_assistant(session.pk, {**blank, "parts": []}, after="u1")
    assert not services.put_assistant(session.pk, blank, after="u1")
    services.put_assistant(session.pk, answer("a2", "kept"), after="u1")
    assert not services.put_assistant(session.pk, {**blank, "id": "a2"}, after="u1")
    assert text_of(session.pk, "a2") == "kept"
    assert change_seq(session.pk) == before + 1


def test_a_second_answer_is_a_sibling(path: Ids) -> None:
    session = make_session("u: hi", "a: first")
    services.put_assistant(session.pk, answer("b2"), after="u1")
    assert path(session.pk) == ["u1", "b2"]
    assert [m.id for m in selectors.branches(session.pk, "u1")] == ["a2", "b2"]


def test_roles_do_not_mix() -> None:
    session = make_session("u: hi", "a: hello")
    with pytest.raises(MessageInvalid):
        services.put_assistant(session.pk, user("n1"), after="u1")
    with pytest.raises(MessageInvalid):
        services.put_assistant(session.pk, answer("u1"), after="u1")
    with pytest.raises(MessageInvalid):
        services.queue_messages(session.pk, [answer("n2")])
    assert Message.objects.count() == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"id": "", "role": "user", "parts": []},
        {"role": "user", "parts": []},
        {"id": "x\0", "role": "user", "parts": []},
        {"id": "x", "role": "tool", "parts": []},
        {"id": "x", "role": "user", "parts": None},
        {"id": "x", "role": "user", "parts": [{"type": "data-x", "data": float("nan")}]},
    ],
)
def test_what_cannot_be_stored_is_refused(bad: shapes.Message) -> None:
    session = make_session()
    with pytest.raises(MessageInvalid):
        services.append_messages(session.pk, [user("fine"), bad])
    assert Message.objects.count() == 0


def test_texts_survive_byte_for_byte() -> None:
    session = make_session()
    text = "nul \0, lone \ud800 and \udc00, 🙂, \u2028, </script>"
    services.append_messages(session.pk, [{**user("u1", text), "metadata": {"k\0": ["\udfff"]}}])
    stored = selectors.get_message(session.pk, "u1")
    assert stored is not None
    assert stored.to_ui() == {**user("u1", text), "metadata": {"k\0": ["\udfff"]}}


def test_what_is_stored_is_sanitised_and_fits() -> None:
    session = make_session()
    urls: list[int] = []

    def spill(cut: Any) -> str:
        urls.append(cut.part_index)
        return f"/kept/{len(urls)}"

    parts: list[shapes.Part] = [{"type": "reasoning", "text": ""}, {"type": "text", "text": "x" * 2_000_000}]
    services.queue_messages(session.pk, [{"id": "q", "role": "user", "parts": parts}], spill=spill)
    row = Message.objects.get(message_id="q")
    assert row.byte_size < 1_000
    assert row.content["metadata"] == {"compactedTextParts": [0], "spilled": {"0.text": "/kept/1"}}
    assert urls == [0]


def test_update_reads_changes_and_writes_under_the_lock(change_seq: Seq) -> None:
    session = make_session("u: hi")
    call: shapes.Part = {"type": "tool-t", "toolCallId": "c1", "state": "approval-requested", "input": {}}
    make_message(session, role="assistant", message_id="a1", parts=[call])
    before = change_seq(session.pk)
    approved = services.update_message(session.pk, "a1", lambda m: apply_approval(m, "c1", Approval(approved=True)))
    assert approved is not None
    assert approved["parts"][0]["state"] == "approval-responded"
    settled = services.update_message(session.pk, "a1", lambda m: apply_result(m, "c1", Result(output=7)))
    assert settled is not None
    assert change_seq(session.pk) == before + 2
    late = services.update_message(session.pk, "a1", lambda m: apply_result(m, "c1", Result(output=8)))
    assert late is None
    assert change_seq(session.pk) == before + 2
    assert selectors.find_messages(session.pk, ["a1"])["a1"].parts[0]["output"] == 7


def test_update_keeps_id_and_role_and_sees_changes_in_place() -> None:
    session = make_session("u: hi")

    def change(message: shapes.Message) -> shapes.Message:
        message["parts"][0]["text"] = "changed in place"
        return {**message, "id": "other", "role": "system"}

    assert services.update_message(session.pk, "u1", change) == {
        "id": "u1",
        "role": "user",
        "parts": [{"type": "text", "text": "changed in place"}],
    }
    assert services.update_message(session.pk, "u1", lambda m: None) is None
    assert text_of(session.pk, "u1") == "changed in place"


def test_every_write_advances_the_sequence_and_stamps_what_changed(
    change_seq: Seq, stamped: Callable[[str], dict[str, int]]
) -> None:
    session = make_session()
    services.append_messages(session.pk, [user("u1"), answer("a1")])
    assert (change_seq(session.pk), stamped(session.pk)) == (1, {"u1": 1, "a1": 1})
    services.queue_messages(session.pk, [user("u2")])
    assert stamped(session.pk) == {"u1": 1, "a1": 1, "u2": 2}
    services.place_messages(session.pk, ["u2"], after=Leaf.ACTIVE)
    services.put_assistant(session.pk, answer("a1", "new"), after=None)
    assert (change_seq(session.pk), stamped(session.pk)) == (4, {"u1": 1, "a1": 4, "u2": 3})
    services.select_leaf(session.pk, "u1")
    assert change_seq(session.pk) == 4  # u2 is the newest leaf already
    services.rename_session(session.pk, "name")
    assert change_seq(session.pk) == 5


def test_a_failed_caller_takes_everything_back(change_seq: Seq) -> None:
    session = make_session("u: hi")
    before = change_seq(session.pk)

    @transaction.atomic
    def write_and_fail() -> None:
        services.append_messages(session.pk, [user("n1")])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert change_seq(session.pk) == before
    assert selectors.get_message(session.pk, "n1") is None


def test_select_leaf_shows_the_newest_end_of_a_branch(path: Ids) -> None:
    session = make_session("u: hi", "a: first", "u: more", "a: end")
    services.put_assistant(session.pk, answer("b2"), after="u1")
    services.put_assistant(session.pk, answer("b4"), after="u3")
    services.select_leaf(session.pk, "b2")
    assert path(session.pk) == ["u1", "b2"]
    assert services.select_leaf(session.pk, "a2") == "b4"
    assert path(session.pk) == ["u1", "a2", "u3", "b4"]
    assert services.select_leaf(session.pk, "a4") == "a4"
    assert services.select_leaf(session.pk, "u1") == "b4"


def test_select_leaf_goes_by_when_messages_were_placed(path: Ids) -> None:
    session = make_session("u: hi")
    services.queue_messages(session.pk, [user("late")])  # an older row than the answer's
    services.put_assistant(session.pk, answer("a1"), after="u1")
    services.put_assistant(session.pk, answer("b1"), after="u1")
    services.place_messages(session.pk, ["late"], after="a1")
    services.select_leaf(session.pk, "b1")
    assert services.select_leaf(session.pk, "u1") == "late"


def test_appending_a_queued_message_places_it(path: Ids) -> None:
    session = make_session("u: hi", "a: hello")
    services.queue_messages(session.pk, [user("q1")])
    assert services.append_messages(session.pk, [user("q1"), answer("a1")]) == ["q1", "a1"]
    assert path(session.pk) == ["u1", "a2", "q1", "a1"]
    assert selectors.queued(session.pk) == []


def test_names_are_cut_and_cleaned() -> None:
    session = services.create_session(name="x\0" * 300)
    assert session.name == "x" * 200
    services.rename_session(session.pk, "a\ud800b")
    session.refresh_from_db()
    assert session.name == "a?b"


def test_ids_are_unique_per_session_not_globally() -> None:
    first, second = make_session("u: one"), make_session("u: two")
    assert (text_of(first.pk, "u1"), text_of(second.pk, "u1")) == ("one", "two")
    with pytest.raises(IntegrityError), transaction.atomic():
        Message.objects.create(session=first, message_id="u1", role="user", content=EMPTY, queued_position=1)


def test_the_database_refuses_a_queued_message_with_a_place() -> None:
    session = make_session("u: hi")
    root = Message.objects.get(message_id="u1")
    with pytest.raises(IntegrityError), transaction.atomic():
        Message.objects.create(
            session=session, message_id="x", role="user", content=EMPTY, queued_position=1, parent=root
        )
    with pytest.raises(IntegrityError), transaction.atomic():
        Message.objects.create(session=session, message_id="x", role="user", content=EMPTY)


def test_history_of_reads_lines() -> None:
    assert [m["id"] for m in history_of("u: hi", "a: hello", "s: be brief")] == ["u1", "a2", "s3"]
    with pytest.raises(ValueError, match="begins with"):
        history_of("hi")
