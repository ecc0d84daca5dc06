"""What adding a message costs, and that its statements find what the ORM finds."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat.errors import QuotaExceeded
from chat.instances import quota
from chat.instances.rows import key_of
from chat.models import AgentInstance, MessageCount, Turn
from chat.runtime.add_messages import add_messages
from chat.turns.state.active import active_turns, running_turn_id
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.messages.selectors import known_ids
from sessions_app.messages.services import fork_session
from sessions_app.models import Message
from tests.db.chat.conftest import make_turn, text_message
from tests.db.statements import statements

pytestmark = pytest.mark.django_db(transaction=True)
NOTE: NewMessage = {"role": "user", "parts": [{"type": "text", "text": "a note"}]}


def kinds(found: list[str]) -> list[str]:
    """The purpose of each, by what only it says."""
    purposes = {
        'SELECT "owner_id"': "counter",
        "UPDATE think_chat_agentinstance": "lock",
        "SELECT 1 FROM think_sessions_message": "known",
        "UPDATE think_chat_messagecount": "count",
        "SELECT t.id FROM think_chat_turn": "turn",
        "FROM think_sessions_session s LEFT JOIN": "session",
        'INSERT INTO "think_sessions_message"': "insert",
        'INSERT INTO "think_sessions_messagewords"': "words",
        "UPDATE think_sessions_session": "show",
    }
    sent = [sql for sql in found if not sql.startswith("BEGIN")]  # on SQLite it is a statement
    return [next((purpose for part, purpose in purposes.items() if part in sql), sql) for sql in sent]


def test_a_message_is_added_with_eight_statements(conversation: AgentInstance) -> None:
    key = key_of(conversation)
    add_messages(key, [NOTE])
    with statements() as found:
        add_messages(key, [NOTE])
    assert kinds(found) == ["counter", "lock", "count", "turn", "session", "insert", "words", "show"]


def test_the_caller_s_id_costs_one_more_unless_it_is_known(conversation: AgentInstance) -> None:
    key = key_of(conversation)
    add_messages(key, [NOTE])
    with statements() as found:
        assert add_messages(key, [text_message("mine", "user")], parent=None) == ["mine"]
    assert kinds(found) == ["counter", "lock", "known", "count", "session", "insert", "words", "show"]
    before = MessageCount.objects.get()
    assert add_messages(key, [{**NOTE, "id": "mine"}]) == ["mine"]
    after = MessageCount.objects.get()
    assert (before.message_count, before.byte_count) == (after.message_count, after.byte_count)
    assert Message.objects.filter(message_id="mine").count() == 1


@pytest.mark.parametrize("count", [1, 30])
def test_which_ids_are_known(conversation: AgentInstance, count: int, make_instance: Any, alice: User) -> None:
    key = key_of(conversation)
    ids = [f"m{number}" for number in range(count)]
    add_messages(key, [text_message(each, "user") for each in ids])
    assert conversation.session_id is not None
    assert known_ids(conversation.session_id, [*ids, "other", ""]) == set(ids)
    assert known_ids(conversation.session_id, ["other"]) == set()
    fork = fork_session(conversation.session_id, ids[-1])
    assert known_ids(fork.pk, [*ids, "other"]) == set(ids)
    elsewhere = make_instance(alice, "elsewhere")
    assert known_ids(elsewhere.session_id, ids) == set()  # they are another conversation's
    add_messages(key_of(elsewhere), [text_message(each, "user") for each in ids])
    assert known_ids(elsewhere.session_id, ids) == set(ids)


def test_the_running_turn_is_the_one_that_the_orm_finds(conversation: AgentInstance) -> None:
    def orm() -> str:
        begun = active_turns(conversation.pk).filter(started_at__isnull=False, finished_at=None)
        here = begun.filter(session_id=conversation.session_id, generation=conversation.generation)
        turn = here.first()
        return "" if turn is None else turn.pk

    def both() -> str:
        conversation.refresh_from_db()
        found = running_turn_id(conversation)
        assert found == orm()
        return found

    assert both() == ""
    make_turn(conversation)  # it has ended
    make_turn(conversation, status="pending", started_at=None, finished_at=None)
    make_turn(conversation, status="parked", finished_at=None, generation=conversation.generation + 1)
    assert both() == ""
    parked = make_turn(conversation, status="parked", finished_at=None)
    later = make_turn(conversation, status="pending", finished_at=None)  # it waits for another try
    assert both() == parked.pk
    Turn.objects.filter(pk=parked.pk).update(finished_at=timezone.now())
    assert both() == later.pk


def test_a_minute_ends_and_the_next_one_begins(alice: User, settings: Any) -> None:
    settings.THINK_MESSAGES_PER_MINUTE = 3
    owner_id = alice.pk

    def row() -> MessageCount:
        return MessageCount.objects.get(owner_id=owner_id)

    quota.count_messages(owner_id, 2, 20)
    began = row().minute_started_at
    assert abs(timezone.now() - began) < timedelta(minutes=1)
    quota.count_messages(owner_id, 1, 10)
    assert (row().minute_count, row().minute_started_at, row().message_count, row().byte_count) == (3, began, 3, 30)
    with pytest.raises(QuotaExceeded) as refused:
        quota.count_messages(owner_id, 1, 10)
    assert refused.value.data["retry_after_seconds"] == 60
    quota.count_messages(owner_id, 9, 90, paced=0)  # an import goes on within its minute
    assert (row().minute_count, row().message_count) == (12, 12)
    MessageCount.objects.update(minute_started_at=began - timedelta(seconds=61))
    quota.count_messages(owner_id, 1, 10)
    assert (row().minute_count, row().message_count, row().byte_count) == (1, 13, 130)
    assert row().minute_started_at >= began


@pytest.mark.parametrize(
    ("setting", "room"), [("THINK_MESSAGES_PER_USER", 3), ("THINK_MESSAGES_QUOTA_BYTES", 30)], ids=["count", "bytes"]
)
def test_what_fits_exactly_is_taken_and_one_more_is_not(alice: User, settings: Any, setting: str, room: int) -> None:
    setattr(settings, setting, room)
    for _ in range(3):
        quota.count_messages(alice.pk, 1, 10)
    with pytest.raises(QuotaExceeded):
        quota.count_messages(alice.pk, 1, 10)
    assert MessageCount.objects.get().message_count == 3
