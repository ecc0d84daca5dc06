"""The snapshot's statement: the same as by the ORM, for every state of a conversation, and no table is scanned."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance, find_instance, key_of
from chat.models import AgentInstance, AgentRun, Turn, TurnSeen
from chat.reads import snapshots
from chat.reads.snapshots import Snapshot, TurnRef, turn_ref
from chat.turns.state.active import active_turns
from chat.turns.state.status import TurnStatus
from fibers.models import Fiber
from sessions_app.messages.services import create_session
from tests.db.chat.conftest import make_turn, say
from tools_app.mcp.selectors import has_servers

pytestmark = pytest.mark.django_db
Make = Callable[..., AgentInstance]


def by_the_orm(key: InstanceKey, user_id: int) -> Snapshot:
    """The same, one query a question."""
    instance = find_instance(key, with_session=True)
    if instance is None:
        return Snapshot(instance_id=None, session_id=None, has_mcp_servers=has_servers("", key.owner_id))
    active = [turn_ref(turn) for turn in active_turns(instance.pk) if turn.session_id == instance.session_id]
    return Snapshot(
        instance_id=instance.pk,
        session_id=instance.session_id,
        change_seq=instance.session.change_seq if instance.session else 0,
        last_position=instance.turn_count,
        turns=tuple(active),
        failed=None if active else unseen_failure(instance, user_id),
        state=instance.state,
        state_version=instance.state_version,
        model_choice=instance.model_choice,
        has_mcp_servers=has_servers(instance.pk, instance.owner_id),
        has_runs=AgentRun.objects.filter(parent=instance).exists(),
    )


def unseen_failure(instance: AgentInstance, user_id: int) -> TurnRef | None:
    turns = Turn.objects.filter(instance=instance, session_id=instance.session_id).select_related("fiber")
    last = turns.order_by("-position").first()
    if last is None or last.generation != instance.generation:
        return None
    ref = turn_ref(last)
    if ref.status is not TurnStatus.ERROR or TurnSeen.objects.filter(turn=last, user_id=user_id).exists():
        return None
    return ref


def empty(_instance: AgentInstance) -> None:
    """Nothing was said yet."""


def answered(instance: AgentInstance) -> None:
    say(instance, "q1", "a1")


def stopped(instance: AgentInstance) -> None:
    make_turn(instance, status="cancelled")


def failed(instance: AgentInstance) -> None:
    say(instance, "q1", "a1")
    make_turn(instance, status="failed", error_text="No.", options={"answers": ["q2", "q3"]})


def interrupted(instance: AgentInstance) -> None:
    make_turn(instance, status="interrupted")


def failed_and_seen(instance: AgentInstance) -> None:
    turn = make_turn(instance, status="failed")
    assert instance.owner_id is not None
    TurnSeen.objects.create(turn=turn, user_id=instance.owner_id)


def failed_and_seen_by_another(instance: AgentInstance) -> None:
    TurnSeen.objects.create(turn=make_turn(instance, status="failed"), user=User.objects.get(username="bob"))


def failed_before_the_last(instance: AgentInstance) -> None:
    make_turn(instance, status="failed")
    say(instance, "q1", "a1")


def failed_and_cleared(instance: AgentInstance) -> None:
    make_turn(instance, status="failed")
    AgentInstance.objects.filter(pk=instance.pk).update(generation=1)


def failed_elsewhere(instance: AgentInstance) -> None:
    make_turn(instance, status="failed")
    make_turn(instance, status="running")
    session = create_session(owner_id=instance.owner_id, scope=instance.pk)
    AgentInstance.objects.filter(pk=instance.pk).update(session=session)


def queued(instance: AgentInstance) -> None:
    make_turn(instance, status="failed")
    first = make_turn(instance, status="running", started_at=timezone.now())
    make_turn(instance, status="pending", started_at=None, parent=first, trigger="continue")
    make_turn(instance, status="pending", started_at=None)


def parked(instance: AgentInstance) -> None:
    make_turn(instance, status="parked")


def recovering(instance: AgentInstance) -> None:
    turn = make_turn(instance, status="running")
    Fiber.objects.filter(pk=turn.fiber_id).update(attempt=2, lease_until=timezone.now() + timedelta(hours=1))
    turn = make_turn(instance, status="pending")
    Fiber.objects.filter(pk=turn.fiber_id).update(reason="recovered")


def alive(instance: AgentInstance) -> None:
    turn = make_turn(instance, status="running")
    Fiber.objects.filter(pk=turn.fiber_id).update(lease_until=timezone.now() + timedelta(hours=1))


def with_state(instance: AgentInstance) -> None:
    AgentInstance.objects.filter(pk=instance.pk).update(state={"a": ["é", None, "\0"]}, state_version=3)


def without_session(instance: AgentInstance) -> None:
    AgentInstance.objects.filter(pk=instance.pk).update(session=None)


STATES = [
    empty,
    answered,
    stopped,
    failed,
    interrupted,
    failed_and_seen,
    failed_and_seen_by_another,
    failed_before_the_last,
    failed_and_cleared,
    failed_elsewhere,
    queued,
    recovering,
    parked,
    alive,
    with_state,
    without_session,
]


@pytest.mark.parametrize("prepare", STATES, ids=lambda state: state.__name__)
def test_it_is_what_the_orm_reads(
    alice: User, bob: User, make_instance: Make, prepare: Callable[[AgentInstance], None]
) -> None:
    instance = make_instance(alice, "talk")
    for other in (make_instance(alice, "other"), make_instance(bob, "talk")):
        make_turn(other, status="failed", error_text="another's")
        make_turn(other, status="running")
    prepare(instance)
    key = key_of(instance)
    for user in (alice, bob):
        with CaptureQueriesContext(connection) as captured:
            found = snapshots.snapshot(key, user.pk)
        assert len(captured) == 1
        assert found == by_the_orm(key, user.pk)


@pytest.mark.parametrize("seconds", [-3600, -1, 3.5, 4.5, 60])
def test_a_worker_is_silent_a_while_before_its_lease_ends(
    alice: User, make_instance: Make, seconds: float, settings: Any
) -> None:
    settings.THINK_FIBER_LEASE_SECONDS, settings.THINK_FIBER_HEARTBEAT_SECONDS = 10.0, 3.0
    instance = make_instance(alice, "talk")
    turn = make_turn(instance, status="running")
    Fiber.objects.filter(pk=turn.fiber_id).update(lease_until=timezone.now() + timedelta(seconds=seconds))
    key = key_of(instance)
    [found] = snapshots.snapshot(key, alice.pk).turns
    assert [found] == list(by_the_orm(key, alice.pk).turns)
    assert found.is_recovering is (seconds < 4)


def test_an_address_without_a_row_is_empty(alice: User, make_instance: Make) -> None:
    make_instance(alice, "talk")
    assert snapshots.snapshot(InstanceKey(owner_id=alice.pk, agent="assistant", name="other"), alice.pk) == Snapshot(
        instance_id=None, session_id=None
    )


def test_sub_agents_are_found_below_their_own_parents(alice: User, bob: User) -> None:
    roots = [InstanceKey(owner_id=user.pk, agent="assistant", name="root") for user in (alice, bob)]
    keys = [root.below("helper", "one").below("helper", "two") for root in roots]
    for key in keys:
        failed(ensure_instance(key))
    for key, user in zip(keys, (alice, bob), strict=True):
        found = snapshots.snapshot(key, user.pk)
        assert found == by_the_orm(key, user.pk)
        assert found.failed is not None
        assert key.parent is not None
        assert snapshots.snapshot(key.parent, user.pk).instance_id not in {None, found.instance_id}
    stranger = replace(keys[0], owner_id=bob.pk)
    assert snapshots.snapshot(stranger, bob.pk) == by_the_orm(stranger, bob.pk)


def test_an_instance_of_nobodys_is_found(alice: User) -> None:
    key = InstanceKey(owner_id=None, agent="assistant", name="shared")
    say(ensure_instance(key), "q1", "a1")
    assert snapshots.snapshot(key, alice.pk) == by_the_orm(key, alice.pk)


def test_no_table_is_scanned(alice: User, make_instance: Make) -> None:
    instance = make_instance(alice, "talk")
    queued(instance)
    with CaptureQueriesContext(connection) as captured:
        snapshots.snapshot(key_of(instance), alice.pk)
    if connection.vendor != "sqlite":
        pytest.skip("on small tables PostgreSQL rightly scans; the benchmark covers it")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured.captured_queries[0]['sql']}")
        plan: list[Any] = [row[3] for row in cursor.fetchall()]
    scans = [
        step
        for step in plan
        if step.startswith("SCAN") and step.split()[1] not in {"i", "picked", "always", "CONSTANT"}
    ]
    assert scans == [], plan
