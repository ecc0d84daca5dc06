"""What `manage.py check` says about policies and settings that no turn could use."""

from typing import Any

import pytest
from django.test import override_settings

from chat import registry
from chat.checks import check_overflow, check_values
from chat.core.context_policy import ContextPolicy
from chat.think import Think


def problems(policy: Any) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "registered_classes", lambda: [type("Reader", (_Reader,), {"context_policy": policy})])
        return [str(found.msg) for found in check_values()]


class _Reader(Think, abstract=True):
    pass


@pytest.mark.parametrize("policy", ["read-time", "last-calls", "coding", "prune", "whole", ContextPolicy()])
def test_known_policies(policy: Any) -> None:
    assert problems(policy) == []


@pytest.mark.parametrize("policy", ["all", None, 5, ["coding"]])
def test_unknown_policies(policy: Any) -> None:
    [problem] = problems(policy)
    assert "context_policy must be a ContextPolicy or one of 'read-time'" in problem


def test_settings_that_are_none() -> None:
    assert check_overflow() == []
    with override_settings(THINK_OVERFLOW_FORMULA="v3", THINK_MODEL_LIMITS={"a/": 5, "b/": {"size": 1}, "c/": {}}):
        found = [str(problem.msg) for problem in check_overflow()]
    assert len(found) == 3
    assert found[0] == "THINK_OVERFLOW_FORMULA must be v1 or v2, not 'v3'."
