"""The recovery budget."""

from datetime import UTC, datetime, timedelta

from fibers.core.budget import Exhausted, Incident, RecoveryBudget, Verdict, next_incident, read_incident

BUDGET = RecoveryBudget(max_recoveries=2, no_progress_seconds=300)


def judge(recoveries: int, *, has_progressed: bool = False, stalled_seconds: float = 0.0) -> Verdict:
    return BUDGET.judge(recoveries=recoveries, has_progressed=has_progressed, stalled_seconds=stalled_seconds)


def test_two_attempts_are_exhausted_at_the_third() -> None:
    assert [judge(spent).exhausted for spent in range(3)] == [None, None, Exhausted.ATTEMPTS]


def test_progress_resets_the_count_and_the_clock() -> None:
    verdict = judge(2, has_progressed=True, stalled_seconds=10_000)
    assert verdict == Verdict(exhausted=None, recoveries=0, is_stalled=False)


def test_five_minutes_without_progress_seal_although_attempts_remain() -> None:
    assert judge(1, stalled_seconds=300).exhausted is None
    assert judge(1, stalled_seconds=301).exhausted is Exhausted.NO_PROGRESS


def test_without_progress_one_attempt_is_spent() -> None:
    assert judge(1) == Verdict(exhausted=None, recoveries=2, is_stalled=True)


def test_the_default_is_ten_attempts_and_five_minutes() -> None:
    assert RecoveryBudget() == RecoveryBudget(max_recoveries=10, no_progress_seconds=300)


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def lose(before: Incident | None, seconds: float, *, steps: int = 0, is_memory: bool = False) -> Incident:
    return next_incident(
        before,
        new_id=f"inc_{seconds:g}",
        now=NOW + timedelta(seconds=seconds),
        steps=steps,
        is_memory=is_memory,
        debounce_seconds=30,
    )


def test_losses_within_half_a_minute_of_one_that_counts_are_one() -> None:
    incident, counted = None, []
    for seconds in (0, 10, 29, 31, 40, 61, 101):
        incident = lose(incident, seconds)
        counted.append(incident.counts)
    assert counted == [True, False, False, True, False, True, True]
    assert (incident.losses if incident else 0) == 7


def test_a_loss_that_does_not_count_spends_no_attempt_but_the_first_one() -> None:
    verdicts = [BUDGET.judge(recoveries=n, has_progressed=False, stalled_seconds=0, counts=False) for n in (0, 2)]
    assert [(verdict.recoveries, verdict.exhausted) for verdict in verdicts] == [(1, None), (2, None)]


def test_an_hour_without_a_loss_ends_the_incident() -> None:
    first = lose(None, 0, is_memory=True)
    assert lose(first, 3600).id == first.id
    later = lose(first, 3601)
    assert (later.id, later.losses, later.memory_losses) == ("inc_3601", 1, 0)


def test_work_is_what_was_settled_since_the_first_loss() -> None:
    incident = lose(lose(None, 0, steps=40), 60, steps=1041)
    assert (incident.steps, incident.work) == (40, 1001)
    for work, expected in ((1000, None), (1001, Exhausted.WORK)):
        verdict = RecoveryBudget().judge(recoveries=0, has_progressed=True, stalled_seconds=0, work=work)
        assert verdict.exhausted is expected


def test_the_fourth_worker_out_of_memory_is_one_too_many_whatever_progress_there_was() -> None:
    incident = None
    for seconds in range(4):
        incident = lose(incident, seconds, is_memory=True)
        verdict = RecoveryBudget().judge(
            recoveries=0, has_progressed=True, stalled_seconds=0, memory_losses=incident.memory_losses
        )
        assert verdict.exhausted is (Exhausted.MEMORY if seconds == 3 else None)


def test_an_incident_survives_its_row() -> None:
    incident = lose(lose(None, 0, steps=3), 7, steps=5, is_memory=True)
    assert read_incident(incident.to_json()) == incident
    assert read_incident(None) is None
