"""Conversations of sub-agents go some time after their run has ended; the run stays, and what is in use as well."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from chat.errors import QuotaExceeded
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance, AgentRun, Turn
from chat.operations import ended_runs
from chat.operations.ended_runs import prune_children
from chat.operations.removal import delete_instance
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from fibers.models import Fiber
from fibers.models.schedules import Schedule
from tests.db.chat.conftest import ApiClient
from tests.db.chat.notes import keys
from tests.db.chat.runs_by_hand import end_run, start_run
from tests.db.statements import statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("notes")]
NOW = timezone.now()
WORDS: Any = {"role": "user", "parts": [{"type": "text", "text": "say: more"}]}


def settle(run: AgentRun, *, days_ago: float) -> None:
    """Have the child's turn and the run end so long ago."""
    then = timezone.now() - timedelta(days=days_ago)
    end_run(run, notify=False)
    Turn.objects.filter(instance=run.child).update(finished_at=then)
    Fiber.objects.filter(scope=run.child_id).update(finished_at=then, status="completed")
    Fiber.objects.filter(pk__in=Turn.objects.filter(instance=run.child).values("fiber")).update(
        finished_at=then, status="completed"
    )
    AgentRun.objects.filter(pk=run.pk).update(finished_at=then)
    AgentInstance.objects.filter(pk=run.child_id).update(active_at=then)


def old_run(owner: User, run_id: str = "r1", *, days_ago: float = 31) -> AgentRun:
    run = start_run(owner, "say: hi", run_id, notify=False)
    settle(run, days_ago=days_ago)
    run.refresh_from_db()
    return run


def test_the_child_of_a_run_that_ended_long_ago_goes_and_the_run_keeps_its_result(alice: User) -> None:
    run = old_run(alice)
    assert prune_children() == 1
    assert not AgentInstance.objects.filter(pk=run.child_id).exists()
    assert not Turn.objects.filter(instance_id=run.child_id).exists()
    kept = AgentRun.objects.get(pk=run.pk)
    assert (kept.child_id, kept.turn_id) == (None, None)
    assert (kept.outcome, kept.finished_at) == (run.outcome, run.finished_at)
    assert AgentInstance.objects.filter(pk=kept.parent_id).exists()
    assert prune_children() == 0


def test_people_are_still_shown_the_run(alice: User, as_alice: ApiClient) -> None:
    run = old_run(alice)
    prune_children()
    [shown] = as_alice.get(f"/instances/{run.parent_id}/runs/tree").json()["items"]
    assert (shown["child_id"], shown["status"], shown["outcome"]["summary"]) == (None, "completed", "Noted.")


@pytest.mark.parametrize(("days", "gone"), [(30, True), (32, False), (0, False)])
def test_a_setting_says_for_how_long(alice: User, settings: Any, days: int, gone: bool) -> None:
    settings.THINK_RUN_CHILD_DAYS = days
    old_run(alice)
    assert prune_children() == int(gone)


def pinned(run: AgentRun) -> None:
    AgentInstance.objects.filter(pk=run.child_id).update(pinned_at=NOW)


def used_since(run: AgentRun) -> None:
    AgentInstance.objects.filter(pk=run.child_id).update(active_at=NOW)


def has_a_turn(run: AgentRun) -> None:
    Turn.objects.filter(instance=run.child).update(finished_at=None)
    Fiber.objects.filter(pk__in=Turn.objects.filter(instance=run.child).values("fiber")).update(
        status="parked", finished_at=None
    )


def has_a_schedule(run: AgentRun) -> None:
    assert run.child_id is not None
    Schedule.objects.create(
        scope=run.child_id, owner=run.owner, status="active", kind="interval", spec="60", function="x"
    )


def has_a_busy_child(run: AgentRun) -> None:
    """An agent below it works."""
    assert run.child is not None
    assert run.owner is not None
    below = ensure_instance(keys(run.owner)[0].below("note-under-test", run.child.name).below("note-under-test", "low"))
    Fiber.objects.create(name="x", status="running", scope=below.pk, available_at=NOW)


def works_for_another(run: AgentRun) -> None:
    AgentRun.objects.create(parent_id=run.parent_id, child=run.child, owner=run.owner, run_id="second", agent=run.agent)


@pytest.mark.parametrize(
    "change", [pinned, used_since, has_a_turn, has_a_schedule, has_a_busy_child, works_for_another]
)
def test_a_child_that_is_in_use_stays(alice: User, change: Any) -> None:
    run = old_run(alice)
    change(run)
    assert prune_children() == 0
    assert AgentInstance.objects.filter(pk=run.child_id).exists()


def test_a_child_that_is_spoken_to_at_that_moment_stays(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = old_run(alice)

    def late(instance: AgentInstance, **how: Any) -> bool:
        admit(key_of(instance), TurnRequest(intake=Program(messages=[WORDS])))
        return delete_instance(instance, **how)

    monkeypatch.setattr(ended_runs, "delete_instance", late)
    assert prune_children() == 0
    assert AgentInstance.objects.filter(pk=run.child_id).exists()


def test_a_round_is_bounded_and_looks_past_those_in_use(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_runs, "BATCH", 2)
    for number in range(3):
        has_a_busy_child(old_run(alice, f"busy{number}", days_ago=60))
    for number in range(3):
        old_run(alice, f"idle{number}")
    assert [prune_children(), prune_children(), prune_children()] == [2, 1, 0]
    left = AgentInstance.objects.exclude(parent=None).filter(name__startswith="idle")
    assert not left.exists()


def test_the_command_counts_and_removes_them_and_they_count_towards_the_limit_no_more(
    alice: User, settings: Any
) -> None:
    old_run(alice)
    settings.THINK_INSTANCES_PER_USER = AgentInstance.objects.filter(owner=alice).count()
    with pytest.raises(QuotaExceeded):
        ensure_instance(keys(alice)[0].below("note-under-test", "further"))
    out = StringIO()
    call_command("prune", "runs", dry_run=True, stdout=out)
    call_command("prune", "runs", stdout=out)
    assert out.getvalue().splitlines() == ["runs: 1 would go", "runs: 1 removed"]
    ensure_instance(keys(alice)[0].below("note-under-test", "further"))


def test_a_round_without_work_is_one_statement(alice: User) -> None:
    old_run(alice, days_ago=1)
    with statements() as sent:
        assert prune_children() == 0
    assert len(sent) == 1, sent


def test_what_is_in_use_costs_a_few_statements_however_much_it_is(alice: User) -> None:
    counts = []
    for number in range(4):
        has_a_busy_child(old_run(alice, f"r{number}"))
        with statements() as sent:
            assert prune_children() == 0
        counts.append(len(sent))
    assert counts == [counts[0]] * 4
    assert counts[0] <= 7, sent
