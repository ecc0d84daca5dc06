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
