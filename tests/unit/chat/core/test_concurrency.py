"""What happens to overlapping submits."""

import pytest

from chat.core.loop.concurrency import ConcurrencyPolicy, OverlapAdmission, Strategy, decide, to_policy
from chat.errors import InputInvalid
from thinkproject.kernel.jsonvalue import JSONValue

WAITING = ("R1", "R2")


@pytest.mark.parametrize(
    ("strategy", "admission"),
    [
        ("queue", OverlapAdmission()),
        ("latest", OverlapAdmission(superseded=WAITING)),
        ("merge", OverlapAdmission(superseded=WAITING, merged=WAITING)),
        ("drop", OverlapAdmission(is_accepted=False)),
        ("debounce", OverlapAdmission(superseded=WAITING, delay_seconds=0.75)),
    ],
)
def test_overlapping_submit(strategy: str, admission: OverlapAdmission) -> None:
    assert decide(to_policy(strategy), is_submit=True, is_busy=True, waiting=WAITING) == admission


@pytest.mark.parametrize("strategy", list(Strategy))
def test_other_entries_always_queue(strategy: Strategy) -> None:
    policy = ConcurrencyPolicy(strategy=strategy)
    assert decide(policy, is_submit=False, is_busy=True, waiting=WAITING) == OverlapAdmission()


@pytest.mark.parametrize("strategy", list(Strategy))
def test_first_submit_never_overlaps(strategy: Strategy) -> None:
    assert decide(ConcurrencyPolicy(strategy=strategy), is_submit=True, is_busy=False) == OverlapAdmission()


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [(0, 0), (10.5, 10.5), (-1, 750), (float("nan"), 750), (float("inf"), 750), ("9", 750), (True, 750), (None, 750)],
)
def test_debounce_time_is_checked(value: JSONValue, milliseconds: float) -> None:
    policy = to_policy({"strategy": "debounce", "debounceMs": value})
    assert (policy.strategy, policy.debounce_ms) == (Strategy.DEBOUNCE, milliseconds)


def test_python_spelling_of_the_debounce_time() -> None:
    assert to_policy({"strategy": "debounce", "debounce_ms": 5}).debounce_ms == 5


@pytest.mark.parametrize("value", ["newest", {"strategy": "newest"}, {"strategy": 3}])
def test_unknown_strategy_is_named(value: str | dict[str, JSONValue]) -> None:
    with pytest.raises(InputInvalid, match="queue, latest, merge, drop, debounce"):
        to_policy(value)


def test_policy_without_a_strategy_queues() -> None:
    assert to_policy({}).strategy is Strategy.QUEUE
