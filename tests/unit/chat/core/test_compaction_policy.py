"""Compaction policies: which one is meant, what its numbers are, and what stays by it."""

from dataclasses import replace
from typing import Any

import pytest

from chat.core.context.compaction_policy import (
    FILES,
    LEAST_TAIL_TOKENS,
    PRESETS,
    SHARE,
    V1,
    V2,
    V3,
    CompactionPolicy,
    compaction_policy,
)
from chat.core.model.overflow import Count, Formula, Limits
from chat.errors import TurnConfigInvalid
from sessions_app.core.compaction.compaction import Bounds
from sessions_app.core.compaction.summary_form import WORK_SECTIONS

SMALL = Limits(context_tokens=100_000, output_tokens=5_000)


def test_a_policy_is_named_or_given() -> None:
    own = CompactionPolicy(keep_turns=1)
    assert compaction_policy("v2") == V2
    assert compaction_policy(own) is own
    assert [compaction_policy(name) for name in PRESETS] == [V1, V2, V3, SHARE, FILES]


@pytest.mark.parametrize("choice", ["v4", "", None, 5, ["v2"], {"formula": "v2"}])
def test_another_name_is_refused(choice: Any) -> None:
    with pytest.raises(TurnConfigInvalid, match="compaction_policy must be a CompactionPolicy or one of 'v1', 'v2'"):
        compaction_policy(choice)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("formula", "v9"),
        ("reserved_tokens", -1),
        ("keep_tokens", 1.5),
        ("keep_turns", "2"),
        ("protect_head", None),
        ("summary_tokens", True),
        ("shown_chars", -500),
        ("min_new_messages", -1),
        ("share_percent", 0),
        ("share_percent", 101),
    ],
)
def test_values_that_no_conversation_could_be_compacted_by_are_refused(field: str, value: Any) -> None:
    with pytest.raises(TurnConfigInvalid, match=repr(value)):
        compaction_policy(replace(V2, **{field: value}))


def test_the_documented_numbers_of_v3() -> None:
    documented = replace(
        V2, formula=Formula.V3, keep_tokens=8_000, summary_tokens=4_096, shown_chars=2_000, sections=WORK_SECTIONS
    )
    assert compaction_policy("v3") == documented
    assert V3.usable_tokens(SMALL) == 80_000
    own = CompactionPolicy()
    assert compaction_policy(own) is own


def test_sections_that_are_none_are_refused() -> None:
    with pytest.raises(TurnConfigInvalid, match="compaction_policy: A section has a title of one line"):
        compaction_policy(CompactionPolicy(sections={"": ""}))
    with pytest.raises(TurnConfigInvalid, match="Sections are 1 to 20 titles"):
        compaction_policy(CompactionPolicy(sections={f"T{n}": "" for n in range(21)}))


def test_the_documented_numbers() -> None:
    assert (SHARE.keep_turns, SHARE.summary_tokens, SHARE.min_new_messages) == (2, 2_000, 4)
    assert SHARE.usable_tokens(SMALL) == 90_000
    assert replace(SHARE, share_percent=50).usable_tokens(SMALL) == 50_000
    assert replace(SHARE, share_percent=50).overflows(Count(input_tokens=50_001), SMALL)
    assert not SHARE.overflows(Count(input_tokens=50_001), SMALL)


def test_the_documented_numbers_of_pruning() -> None:
    assert (FILES.keep_tokens, FILES.lists_files, FILES.usable_tokens(SMALL)) == (20_000, True, 100_000 - 16_384)
    assert FILES.overflows(Count(total_tokens=90_000), SMALL)
    assert not replace(FILES, reserved_tokens=1_000).overflows(Count(total_tokens=90_000), SMALL)


@pytest.mark.parametrize("policy", [V1, V2])
@pytest.mark.parametrize(("usable", "kept"), [(1, 2_000), (8_000, 2_000), (40_000, 10_000), (90_000, 15_000)])
def test_a_quarter_of_what_fits_stays(policy: CompactionPolicy, usable: int, kept: int) -> None:
    assert policy.bounds_when_full(usable) == Bounds(tail_tokens=kept)
    assert policy.bounds_when_asked(usable) == Bounds(tail_tokens=min(20_000, usable // 4))


def test_so_many_tokens_stay_but_at_most_half_of_what_fits() -> None:
    assert V3.bounds_when_full(80_000) == Bounds(tail_tokens=8_000)
    assert V3.bounds_when_full(16_000) == Bounds(tail_tokens=8_000)
    assert V3.bounds_when_full(15_999) == Bounds(tail_tokens=7_999)
    assert V3.bounds_when_asked(100_000) == Bounds(tail_tokens=8_000)
    assert V3.bounds_when_asked(20_000) == Bounds(tail_tokens=5_000)


def test_turns_stay_and_tokens_only_where_given() -> None:
    assert SHARE.bounds_when_full(80_000) == Bounds(tail_tokens=0, tail_turns=2, min_new_messages=4)
    assert SHARE.bounds_when_asked(80_000) == SHARE.bounds_when_full(80_000)
    assert replace(SHARE, keep_tokens=500).bounds_when_full(80_000).tail_tokens == 500


@pytest.mark.parametrize("policy", [*PRESETS.values(), CompactionPolicy(protect_head=50, keep_turns=50)])
def test_the_last_resort_keeps_the_last_messages_whatever_the_policy(policy: CompactionPolicy) -> None:
    assert policy.least_bounds() == Bounds(tail_tokens=LEAST_TAIL_TOKENS)


def test_a_policy_may_protect_more_or_less_of_the_beginning() -> None:
    assert CompactionPolicy(protect_head=7).bounds_when_full(80_000).protect_head == 7
    assert CompactionPolicy(protect_head=1).least_bounds().protect_head == 1
