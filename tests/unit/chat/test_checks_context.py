"""What `manage.py check` says about policies and settings that no turn could use."""

from typing import Any

import pytest
from django.test import override_settings

from chat.agent import registry
from chat.checks import check_overflow, check_values
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.context_policy import ContextPolicy
from chat.think import Think


def problems(policy: Any, name: str = "context_policy") -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "registered_classes", lambda: [type("Reader", (_Reader,), {name: policy})])
        return [str(found.msg) for found in check_values()]


class _Reader(Think, abstract=True):
    pass


@pytest.mark.parametrize(
    "policy", ["read-time", "last-calls", "coding", "prune", "whole", "cache-aware", ContextPolicy()]
)
def test_known_policies(policy: Any) -> None:
    assert problems(policy) == []


@pytest.mark.parametrize("policy", ["all", None, 5, ["coding"]])
def test_unknown_policies(policy: Any) -> None:
    [problem] = problems(policy)
    assert "context_policy must be a ContextPolicy or one of 'read-time'" in problem


def test_settings_that_are_none() -> None:
    assert check_overflow() == []
    with override_settings(THINK_OVERFLOW_FORMULA="v4", THINK_MODEL_LIMITS={"a/": 5, "b/": {"size": 1}, "c/": {}}):
        found = [str(problem.msg) for problem in check_overflow()]
    assert len(found) == 3
    known = "'v1', 'v2', 'v3', 'share', 'files'"
    assert found[0] == f"THINK_OVERFLOW_FORMULA must be a CompactionPolicy or one of {known}, not 'v4'."


@pytest.mark.parametrize("policy", [None, "v1", "v2", "v3", "share", "files", CompactionPolicy()])
def test_known_compaction_policies(policy: Any) -> None:
    assert problems(policy, "compaction_policy") == []


@pytest.mark.parametrize("policy", ["v4", "", 5, ["v2"]])
def test_unknown_compaction_policies(policy: Any) -> None:
    [problem] = problems(policy, "compaction_policy")
    assert "compaction_policy must be a CompactionPolicy or one of 'v1'" in problem


def test_compaction_policies_with_impossible_numbers() -> None:
    [problem] = problems(CompactionPolicy(keep_tokens=-1, share_percent=101), "compaction_policy")
    assert "keep_tokens must be a whole number from 0, not -1." in problem
    assert "share_percent must be from 1 to 100, not 101." in problem


@pytest.mark.parametrize("formula", ["v1", "v2", "v3", "share", "files"])
def test_presets_a_site_may_name(formula: str) -> None:
    with override_settings(THINK_OVERFLOW_FORMULA=formula):
        assert check_overflow() == []
