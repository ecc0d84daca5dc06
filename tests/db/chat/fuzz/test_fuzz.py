"""Random histories of two tabs end with every tab equal to what is stored (docs/design/fuzzing.md)."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.db.chat.fuzz.machine import Conversation

QUICK = settings(
    max_examples=int(__import__("os").environ.get("EX", "25")),
    stateful_step_count=25,
    derandomize=True,
    phases=[__import__("hypothesis").Phase.generate]
    + ([__import__("hypothesis").Phase.shrink] if "SHR" in __import__("os").environ else []),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.django_db(transaction=True)
def test_every_tab_shows_what_is_stored() -> None:
    run_state_machine_as_test(Conversation, settings=QUICK)  # type: ignore[no-untyped-call]
