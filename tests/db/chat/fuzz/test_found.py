"""Histories that the fuzzer has found, played as they were."""

from collections.abc import Iterator

import pytest

from tests.db.chat.fuzz.machine import Conversation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def state(transactional_db: None) -> Iterator[Conversation]:
    made = Conversation()
    made.both_come()
    yield made
    made.teardown()


def test_a_message_that_was_stopped_stands_behind_the_answer_that_ran(state: Conversation) -> None:
    state.send(kind="talk", number=1)
    state.send(kind="talk", number=1)
    state.cancel(back=0, number=1)
    state.rest()


@pytest.mark.parametrize("_time", range(4))  # which of two frames comes first differs from time to time
def test_a_call_that_was_answered_before_its_turn_was_known_is_shown_as_answered(
    state: Conversation, _time: int
) -> None:
    state.send(kind="add", number=0)
    state.lose_bell(kind="turn.accepted")
    state.lose_bell(kind="turn.accepted")
    state.work(words=0)
    state.regenerate(number=0)
    state.decide_both_ways(approved=False, number=0, other=0)
    state.rest()


def test_frames_that_were_under_way_to_the_tab_that_clears_leave_nothing(state: Conversation) -> None:
    state.look_away(number=0)
    state.decide_both_ways(approved=False, number=0, other=0)
    state.clear(number=0, sure=2)
    state.look_again()
    state.tabs_are_right_whenever_nothing_is_under_way()


def test_the_answer_to_an_own_request_goes_on_while_it_is_offered(state: Conversation) -> None:
    """The client never stopped listening to it: what comes before it has acknowledged the offer is not out of place."""
    state.look_away(number=1)
    state.send_and_work(kind="talk", number=1, words=1)
    state.probe_again(number=1)
    state.work(words=2)
    state.rest()
