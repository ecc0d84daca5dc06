"""When the policies of a turn have nothing to look at before its first step."""

from typing import Any

import pytest

from chat.models import AgentInstance
from chat.turns import policies
from chat.turns.policies import StepsSoFar


class _Watchful:
    """A policy of a site's own: what it looks at is not known here."""

    def check_admission(self, instance: AgentInstance) -> None:
        """Nothing."""

    def check_step(self, instance: AgentInstance, steps: StepsSoFar) -> None:
        """Nothing."""


@pytest.mark.parametrize(("has_budget", "looks"), [(False, False), (True, True), (None, True)])
def test_the_built_in_policies_look_where_there_may_be_a_budget(has_budget: bool | None, looks: bool) -> None:
    assert policies.looks_before(has_budget=has_budget) is looks


def test_a_policy_of_the_site_is_always_asked(settings: Any) -> None:
    settings.THINK_TURN_POLICIES = [f"{__name__}.{_Watchful.__name__}"]
    assert policies.looks_before(has_budget=False)
