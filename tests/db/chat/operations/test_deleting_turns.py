"""Turns that go, by whatever way, are let go by the runs of agents that name them: with as many statements for any."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance, AgentRun, StreamSegment, Turn, TurnSeen
from chat.operations.removal import delete_instance
from chat.turns.state import deletion
from sessions_app.messages.services import create_session, delete_session
from sessions_app.models import Session
from tests.db.chat.conftest import make_turn

pytestmark = pytest.mark.django_db(transaction=True)

WORKER = "assistant"


def work_for(parent: AgentInstance, name: str, *, runs: int, turns: int = 1) -> AgentInstance:
    """A sub-agent that has worked so often for turns of its parent: each run has a turn of both."""
    child = ensure_instance(key_of(parent).below(WORKER, name))
    mine = [make_turn(parent) for _ in range(turns)]
    theirs = [make_turn(child) for _ in range(turns)]
    AgentRun.objects.bulk_create(
        AgentRun(
            parent=parent,
            child=child,
            owner_id=parent.owner_id,
            run_id=f"{name} {number}",
            agent=WORKER,
            parent_turn=mine[number % turns],
            turn=theirs[number % turns],
        )
        for number in range(runs)
    )
    return child


def statements(act: Callable[[], Any]) -> int:
    Turn.objects.exists()  # a new connection has statements of its own
    with CaptureQueriesContext(connection) as queries:
        act()
    return len(queries)


def links() -> set[tuple[bool, bool, bool]]:
    """Which of child, turn of the parent and turn of the child the runs name."""
    rows = AgentRun.objects.values_list("child", "parent_turn", "turn")
    return {(child is not None, mine is not None, theirs is not None) for child, mine, theirs in rows}


def test_a_conversation_goes_with_as_many_statements_for_any_number_of_runs(
    alice: User, conversation: AgentInstance
) -> None:
    counts = []
    for runs in (1, 300):
        parent = ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name=f"of {runs}"))
        work_for(parent, "helper", runs=runs)
        AgentRun.objects.update(outcome={"ok": True}, finished_at=parent.created_at)
        counts.append(statements(partial(delete_instance, parent)))
        assert not AgentRun.objects.exists()
    assert counts[0] == counts[1]
    assert list(AgentInstance.objects.all()) == [conversation]


def test_a_sub_agent_goes_alone_and_its_runs_keep_the_turn_that_they_worked_for(conversation: AgentInstance) -> None:
    counts = []
    for runs in (1, 300):
        child = work_for(conversation, f"helper of {runs}", runs=runs)
        AgentRun.objects.update(outcome={"ok": True}, finished_at=child.created_at)
        counts.append(statements(partial(delete_instance, child)))
    assert counts[0] == counts[1]
    assert AgentRun.objects.count() == 301
    assert links() == {(False, True, False)}


def test_a_history_goes_and_the_runs_of_its_turns_stay(conversation: AgentInstance) -> None:
    counts = []
    for runs in (1, 300):
        session = create_session(scope=conversation.pk, owner_id=conversation.owner_id)
        work_for(conversation, f"helper of {runs}", runs=runs)
        Turn.objects.filter(instance=conversation, runs__isnull=False).update(session=session)
        counts.append(statements(partial(delete_session, session.pk)))
    assert counts[0] == counts[1]
    assert AgentRun.objects.count() == 301
    assert links() == {(True, False, True)}


def test_a_history_deleted_in_the_admin_takes_its_turns_with_their_logs(
    conversation: AgentInstance, admin_user: User
) -> None:
    work_for(conversation, "helper", runs=3)
    turn = make_turn(conversation, status="running")
    StreamSegment.objects.create(stream=turn.pk, first_offset=0, last_offset=0, data="{}")
    staff = Client()
    staff.force_login(admin_user)
    page = reverse("admin:think_sessions_session_delete", args=[conversation.session_id])
    assert staff.post(page, {"post": "yes"}).status_code == 302
    assert not Turn.objects.filter(instance=conversation).exists()
    assert not StreamSegment.objects.exists()
    assert links() == {(True, False, True)}


def test_a_user_who_is_deleted_takes_all_of_it_along_and_nothing_of_others(
    alice: User, bob: User, conversation: AgentInstance
) -> None:
    work_for(conversation, "helper", runs=3, turns=2)
    other = ensure_instance(InstanceKey(owner_id=bob.pk, agent="assistant", name="of bob"))
    work_for(other, "helper", runs=2)
    User.objects.filter(pk=alice.pk).delete()
    assert set(AgentRun.objects.values_list("parent", flat=True)) == {other.pk}
    assert links() == {(True, True, True)}
    assert not Session.objects.filter(owner_id=alice.pk).exists()


def test_the_database_refuses_to_delete_a_turn_that_a_run_names(conversation: AgentInstance) -> None:
    work_for(conversation, "helper", runs=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Turn.objects.filter(runs__isnull=False).delete()
    assert links() == {(True, True, True)}


def test_rows_of_other_apps_that_name_turns_go_as_their_relations_say(
    conversation: AgentInstance, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a table of an app that is not ours: its relation decides, so the rows are collected."""
    seen_by_others = deletion.RELEASED - {TurnSeen}
    monkeypatch.setattr(deletion, "RELEASED", seen_by_others)
    work_for(conversation, "helper", runs=2)
    TurnSeen.objects.create(turn=make_turn(conversation), user=alice)
    deletion.delete_turns(Turn.objects.filter(instance=conversation))
    assert not TurnSeen.objects.exists()
    assert links() == {(True, False, True)}
