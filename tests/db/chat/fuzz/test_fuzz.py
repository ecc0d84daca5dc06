"""Random histories of two tabs end with every tab equal to what is stored (docs/design/fuzzing.md)."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.budget import examples
from tests.db.chat.fuzz.machine import Conversation

IS_LONG = os.environ.get("TEST_CHAOS") == "long"  # make chaos
QUICK = examples(25)
FUZZ = os.environ.get("TEST_FUZZ", "")  # a number of random histories; found ones are not made shorter
BUDGET = settings(
    max_examples=int(FUZZ) if FUZZ else 1500 if IS_LONG else QUICK,
    stateful_step_count=40 if IS_LONG else 25,
    derandomize=not IS_LONG,  # the same histories in every run: who changes something else is not surprised
    database=None,
    deadline=None,
    phases=[Phase.generate] if FUZZ else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.chaos
@pytest.mark.timeout(3600 if IS_LONG else 600)  # a history that fails is made shorter, which takes its time
@pytest.mark.django_db(transaction=True)
def test_every_tab_shows_what_is_stored() -> None:
    run_state_machine_as_test(Conversation, settings=BUDGET)
