"""The triggers of the feed: for whom they write, what they cost, and what migrations do to them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from chat.feed import triggers
from chat.feed.errors import FeedGone
from chat.feed.reading import open_feed, read_changes
from chat.models import AgentInstance, FeedChange, FeedHead, Turn
from tests.db.chat.conftest import say
from tests.db.chat.staff import staff
from tests.db.statements import statements

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def test_nothing_is_written_for_people_without_a_reader(conversation: AgentInstance, bob: User) -> None:
    open_feed(bob.pk)
    say(conversation, "q2", "a2")
    assert not FeedChange.objects.exists()
    assert FeedHead.objects.get().seq == 0


def test_changes_cost_no_statement(conversation: AgentInstance, alice: User) -> None:
    with statements() as closed:
        say(conversation, "q2", "a2")
    open_feed(alice.pk)
    with statements() as opened:
        say(conversation, "q3", "a3")
    assert len(opened) == len(closed)


@pytest.mark.parametrize("model", [AgentInstance, Turn])
def test_tables_can_be_made_anew_and_readers_look_again(
    conversation: AgentInstance, alice: User, model: type[AgentInstance | Turn]
) -> None:
    position = open_feed(alice.pk)
    say(conversation, "q2", "a2")
    triggers.uninstall(using="default", plan=["a migration"])
    field: Any = model._meta.get_field("agent" if model is AgentInstance else "request_id")
    longer = field.clone()
    longer.max_length = 300
    longer.set_attributes_from_name(field.name)
    longer.model = model
    with connection.schema_editor() as editor:
        editor.alter_field(model, field, longer)
        editor.alter_field(model, longer, field)
    triggers.install(using="default")
    if connection.vendor == "sqlite":  # PostgreSQL has kept its triggers
        with pytest.raises(FeedGone):
            read_changes(alice.pk, position)
    now = open_feed(alice.pk)
    say(conversation, "q3", "a3")
    assert [change.type for change in read_changes(alice.pk, now).changes][:2] == ["turn", "message"]


def test_triggers_that_are_as_the_code_has_them_stay(alice: User) -> None:
    position = open_feed(alice.pk)
    triggers.install(using="default")
    assert read_changes(alice.pk, position).position == position
    with connection.cursor() as cursor:
        cursor.execute(triggers.removals(connection)[0])
    if connection.vendor == "sqlite":
        triggers.install(using="default")
        with pytest.raises(FeedGone):
            read_changes(alice.pk, position)


def test_staff_see_how_far_feeds_are_and_no_names(conversation: AgentInstance, alice: User) -> None:
    open_feed(alice.pk)
    say(conversation, "q2", "a2")
    _, client = staff("view_feedhead")
    pages = [client.get(f"/admin/think_chat/feedhead/{path}") for path in ("", f"{alice.pk}/change/")]
    for page in pages:
        assert page.status_code == 200
        assert "alice" in page.content.decode()
        assert "q2" not in page.content.decode()
