"""The statements that write and read conversations by hand do what the ORM says."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, models
from django.test.utils import CaptureQueriesContext

from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors, services
from sessions_app.messages.writer import take_session, writing
from sessions_app.models import Message, MessageWords, Session
from sessions_app.queries import PathBounds
from sessions_app.testing import make_session, text_message
from thinkproject.kernel.statements import Columns, Statement

pytestmark = pytest.mark.django_db(transaction=True)


def columns(row: models.Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.mark.parametrize("model", [Session, Message, MessageWords, User])
def test_columns_read_what_the_orm_reads(model: type[models.Model]) -> None:
    User.objects.create_user("bea")
    session = make_session("u: hi\0 \ud800", "a: hello")
    services.queue_messages(session.pk, [text_message("user", "later", "q")])
    every = Columns(model, prefix="t")
    rows = Statement(f"SELECT :row: FROM {model._meta.db_table} t ORDER BY 1", row=every).all()
    read = sorted((columns(every.build(row)) for row in rows), key=str)
    assert read == sorted((columns(row) for row in model._default_manager.all()), key=str)
    assert read


def test_an_inserted_message_is_a_created_one() -> None:
    session = make_session("u: hi")
    [message_id] = services.append_messages(session.pk, [text_message("assistant", "hello", "by hand")], turn_id="t")
    ours = columns(Message.objects.get(message_id=message_id))
    created = Message(**{**ours, "id": None, "message_id": "by the orm"})
    created.save()
    created.refresh_from_db()
    theirs = columns(created)
    assert {name for name in ours if ours[name] != theirs[name]} <= {"id", "message_id", "created_at", "updated_at"}


def test_a_locked_session_comes_with_its_leaf_and_its_queue() -> None:
    session = make_session("u: hi", "a: hello")
    services.queue_messages(session.pk, [text_message("user", "one", "q1"), text_message("user", "two", "q2")])
    with writing(session.pk):
        writer = take_session(session.pk, with_queue=True)
    assert [row.message_id for row in writer.queue] == ["q1", "q2"]
    assert [columns(row) for row in writer.queue] == [columns(row) for row in Message.objects.queue_of(session.pk)]
    leaf = writer.position(Leaf.ACTIVE)
    assert leaf is not None
    assert (leaf.message_id, leaf.depth) == ("a2", 1)
    assert writer.change_seq == Session.objects.get(pk=session.pk).change_seq + 1


def test_a_history_is_the_tail_that_the_queryset_gives() -> None:
    session = make_session(*["u: question", "a: answer"] * 30)
    bounds = PathBounds(max_messages=17, max_bytes=10**6, exchange_bytes=10**6)
    wanted = Message.objects.tail_to_compaction(session.pk, None, bounds)
    read, is_cut = selectors.compacted_tail(session.pk, Leaf.ACTIVE, max_messages=17, max_bytes=10**6)
    assert is_cut
    assert [message.id for message in read] == [row.message_id for row in wanted]
    stored = selectors.find_messages(session.pk, [message.id for message in read])
    assert read == list(stored.values())


def test_a_change_is_two_statements_of_the_session_and_none_where_nothing_changes() -> None:
    session = make_session("u: hi", "a: hello")
    before = Session.objects.get(pk=session.pk)
    with CaptureQueriesContext(connection) as captured:
        services.put_assistant(session.pk, text_message("assistant", "more", "a3"), after="a2")
    assert len([query for query in captured if "think_sessions_session" in query["sql"]]) == 2
    after = Session.objects.get(pk=session.pk)
    assert (after.change_seq, after.active_leaf_id) == (before.change_seq + 1, Message.objects.get(message_id="a3").pk)
    with CaptureQueriesContext(connection) as captured:
        assert not services.put_assistant(session.pk, text_message("assistant", "more", "a3"), after="a2")
    assert not [query for query in captured if query["sql"].startswith("UPDATE")]
    assert columns(Session.objects.get(pk=session.pk)) == columns(after)


def test_a_message_that_is_queued_twice_leaves_the_number_of_changes() -> None:
    session = make_session("u: hi")
    services.queue_messages(session.pk, [text_message("user", "one", "q1")])
    before = Session.objects.get(pk=session.pk).change_seq
    services.queue_messages(session.pk, [text_message("user", "other words", "q1")])
    assert Session.objects.get(pk=session.pk).change_seq == before
    assert selectors.queued(session.pk)[0].parts[0]["text"] == "one"
