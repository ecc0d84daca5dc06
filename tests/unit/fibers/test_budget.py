"""The recovery budget."""

from fibers.core.budget import Exhausted, RecoveryBudget, Verdict

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
