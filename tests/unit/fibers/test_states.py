"""The table of moves."""

import pytest

from fibers.core.states import HALTED, MOVES, TERMINAL, FiberEvent, FiberStatus, advance, may_run_again, sources
from fibers.errors import IllegalMove

LIVE = [status for status in FiberStatus if status not in TERMINAL]


@pytest.mark.parametrize(("status", "event"), list(MOVES))
def test_an_allowed_transition_follows_the_table(status: FiberStatus, event: FiberEvent) -> None:
    assert advance(status, event) is MOVES[status, event]


@pytest.mark.parametrize("status", sorted(TERMINAL - {FiberStatus.INTERRUPTED}))
def test_a_terminal_state_is_left_by_a_persons_requeue_alone(status: FiberStatus) -> None:
    allowed = {event for event in FiberEvent if (status, event) in MOVES}
    again = {FiberStatus.FAILED: {FiberEvent.REQUEUE}, FiberStatus.CANCELLED: {FiberEvent.REOPEN}}
    assert allowed == again.get(status, set())


@pytest.mark.parametrize("status", list(FiberStatus))
def test_of_stopped_fibers_only_halted_ones_run_again(status: FiberStatus) -> None:
    is_given_up = status in {FiberStatus.FAILED, FiberStatus.INTERRUPTED}
    assert may_run_again(status, "stopped") is is_given_up
    assert may_run_again(status, HALTED) is (is_given_up or status is FiberStatus.CANCELLED)


def test_an_interrupted_fiber_is_left_by_running_again_and_by_resolving_alone() -> None:
    allowed = {event for event in FiberEvent if (FiberStatus.INTERRUPTED, event) in MOVES}
    resolutions = {FiberEvent.RESOLVE_COMPLETED, FiberEvent.RESOLVE_FAILED, FiberEvent.RESOLVE_CANCELLED}
    assert allowed == {FiberEvent.REQUEUE, *resolutions}


def test_an_interrupted_fiber_alone_is_resolved_and_only_to_an_end() -> None:
    resolved = {move: target for move, target in MOVES.items() if move[1].value.startswith("resolve")}
    assert {status for status, _event in resolved} == {FiberStatus.INTERRUPTED}
    assert set(resolved.values()) == {FiberStatus.COMPLETED, FiberStatus.FAILED, FiberStatus.CANCELLED}


@pytest.mark.parametrize("status", LIVE)
def test_every_live_state_can_be_cancelled(status: FiberStatus) -> None:
    assert advance(status, FiberEvent.CANCEL) is FiberStatus.CANCELLED


def test_only_a_claim_leads_to_running() -> None:
    assert [move for move, target in MOVES.items() if target is FiberStatus.RUNNING] == [
        (FiberStatus.PENDING, FiberEvent.CLAIM)
    ]


def test_a_completed_fiber_cannot_be_cancelled() -> None:
    with pytest.raises(IllegalMove, match="'cancel' does not apply to a completed fiber"):
        advance(FiberStatus.COMPLETED, FiberEvent.CANCEL)


def test_sources_are_the_states_with_that_move() -> None:
    assert set(sources(FiberEvent.REQUEUE)) == {FiberStatus.FAILED, FiberStatus.INTERRUPTED}
    assert set(sources(FiberEvent.CANCEL)) == set(LIVE)
