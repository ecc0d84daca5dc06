"""Rows of audit logs are only added: the database refuses all else, but for what is erased as a whole."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from chat.turns.admission.stop import clear_instance
from sessions_app.apps import APPEND_ONLY as OF_SESSIONS
from sessions_app.context.history import ContextOwner, erase_texts, note_change
from sessions_app.messages.services import delete_session
from sessions_app.models import ContextChange
from tools_app.apps import APPEND_ONLY as OF_TOOLS
from tools_app.calls.services import forget_calls
from tools_app.core.guard.rules import SeenText, Spot
from tools_app.core.origins import Origin
from tools_app.guard.standings import GuardScope, see
from tools_app.models import ApprovalEvent, ApprovalEventKind, GuardEvent, ToolCallRecord

AUDITED = (ApprovalEvent, GuardEvent, ContextChange)

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.fixture
def audited_talk(conversation: AgentInstance) -> AgentInstance:
    """A conversation with a row in each audit log, all by or about its owner."""
    assert conversation.session_id is not None
    turn = conversation.turns.get()
    call = ToolCallRecord.objects.create(
        turn_id=turn.pk, scope=conversation.pk, call_id="c1", owner=conversation.owner, tool_name="pay"
    )
    ApprovalEvent.objects.create(
        call=call, kind=ApprovalEventKind.DENIED, actor=conversation.owner, via="api", input_hash="h"
    )
    place = GuardScope(session_id=conversation.session_id, scope=conversation.pk, owner_id=conversation.owner_id)
    see(place, [SeenText(Origin.WEB, "https://example.org")], at=Spot(message_id="a1"))
    note_change(ContextOwner(session_id=conversation.session_id), "block:notes", "set", after="a secret")
    return conversation


def left() -> list[int]:
    return [model.objects.count() for model in AUDITED]


def changes_of(model: type[models.Model]) -> list[Callable[[], Any]]:
    """Ways to change or delete a row, each of which would succeed with an ordinary table."""
    table, rows = model._meta.db_table, model._default_manager.all()
    ways: list[Callable[[], Any]] = [
        lambda: rows.update(created_at=None),
        lambda: rows.update(actor=None),
        lambda: rows.delete(),
        lambda: rows._raw_delete(rows.db),
        lambda: run(f"UPDATE {table} SET via = 'forged'"),
        lambda: run(f"DELETE FROM {table}"),
    ]
    if connection.vendor == "postgresql" and not connection.in_atomic_block:  # else it has other reasons to refuse
        ways.append(lambda: run(f"TRUNCATE {table} CASCADE"))
    return ways


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def refused(way: Callable[[], Any]) -> None:
    with pytest.raises(IntegrityError, match="only added"), transaction.atomic():
        way()


@pytest.mark.parametrize("model", AUDITED, ids=lambda model: model.__name__)
def test_no_row_is_changed_or_deleted_by_querysets_or_sql(audited_talk: AgentInstance, model: Any) -> None:
    before = list(model.objects.values())
    assert before
    for way in changes_of(model):
        refused(way)
    assert list(model.objects.values()) == before


def test_no_row_goes_with_the_call_that_it_is_about_alone(audited_talk: AgentInstance) -> None:
    refused(ToolCallRecord.objects.all().delete)
    assert left() == [1, 1, 1]


def test_rows_go_with_the_whole_of_what_they_are_about(audited_talk: AgentInstance) -> None:
    assert audited_talk.session_id is not None
    forget_calls(scopes=[audited_talk.pk])
    assert left() == [0, 1, 1]
    erase_texts(ContextOwner(session_id=audited_talk.session_id), "notes")
    assert ContextChange.objects.get().after == ""
    clear_instance(key_of(audited_talk))
    assert left() == [0, 0, 1]
    delete_session(audited_talk.session_id)
    assert left() == [0, 0, 0]


def test_nothing_is_kept_of_a_removed_conversation_and_others_are_kept_afterwards(
    audited_talk: AgentInstance, bob: User
) -> None:
    note_change(ContextOwner(owner_id=bob.pk), "block:notes", "set", after="mine")
    delete_instance(audited_talk)
    assert left() == [0, 0, 1]
    refused(ContextChange.objects.all().delete)


def test_a_person_who_is_erased_is_taken_out_of_the_rows_of_others(audited_talk: AgentInstance, bob: User) -> None:
    call = ToolCallRecord.objects.get()
    ApprovalEvent.objects.create(call=call, kind=ApprovalEventKind.APPROVED, actor=bob, via="api", input_hash="h")
    bob.delete()
    assert list(ApprovalEvent.objects.values_list("actor", flat=True)) == [audited_talk.owner_id, None]
    refused(ApprovalEvent.objects.all().delete)
    assert audited_talk.owner is not None
    audited_talk.owner.delete()
    assert left() == [0, 0, 0]


def test_a_removal_that_fails_leaves_the_rows_as_well_kept_as_before(audited_talk: AgentInstance) -> None:
    def fail() -> None:
        delete_instance(audited_talk)
        raise IntegrityError("only added")

    refused(fail)
    assert left() == [1, 1, 1]
    refused(ApprovalEvent.objects.all().delete)


@pytest.mark.django_db(transaction=True)
def test_tables_made_anew_by_a_migration_are_kept_as_before_and_a_flush_empties_them(
    audited_talk: AgentInstance,
) -> None:
    for model in AUDITED:
        with connection.schema_editor() as editor:
            field = model._meta.get_field("via")
            editor.alter_field(model, field, _longer(field))
            editor.alter_field(model, _longer(field), field)
    call_command("migrate", verbosity=0)
    for model in AUDITED:
        for way in changes_of(model):
            refused(way)
    assert {model._meta.db_table for model in AUDITED} == {*OF_SESSIONS, *OF_TOOLS}
    call_command("flush", verbosity=0, interactive=False)
    assert left() == [0, 0, 0]


def _longer(field: Any) -> Any:
    longer = field.clone()
    longer.max_length = field.max_length + 1
    longer.set_attributes_from_name(field.name)
    longer.model = field.model
    return longer
