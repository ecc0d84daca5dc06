"""The overflow formulas at their boundaries, and the estimate of a request."""

import pytest

from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelRequest,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from chat.core.model.overflow import (
    Count,
    Formula,
    Limits,
    counted,
    estimate_request,
    overflows,
    overflows_v1,
    overflows_v2,
    usable_tokens,
)
from sessions_app.core.compaction.tokens import length_over_four

SMALL = Limits(context_tokens=100_000, output_tokens=5_000)
LARGE = Limits(context_tokens=200_000, output_tokens=64_000)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 0),
        ("ab", 1),
        ("abc", 1),
        ("a" * 10, 3),
        ("hello world", 3),
        ("\U0001f600", 1),
        ("\U0001f600a", 1),
    ],
)
def test_tokens_are_estimated_from_characters(text: str, tokens: int) -> None:
    assert length_over_four(text) == tokens


def test_the_formula_of_the_report() -> None:
    reported = Count(input_tokens=100_000, cache_read_tokens=5_000, output_tokens=10_000)
    assert overflows_v1(reported, SMALL)
    assert usable_tokens(SMALL, Formula.V1) == 95_000
    assert not overflows_v1(Count(input_tokens=80_000, cache_read_tokens=5_000, output_tokens=10_000), SMALL)
    assert overflows_v1(Count(input_tokens=80_000, cache_read_tokens=5_000, output_tokens=10_001), SMALL)


def test_an_answer_counts_32000_at_most() -> None:
    assert usable_tokens(LARGE, Formula.V1) == 200_000 - 32_000
    assert usable_tokens(Limits(context_tokens=200_000), Formula.V1) == 200_000 - 32_000


def test_unknown_or_switched_off_is_no_overflow() -> None:
    much = Count(input_tokens=10**9)
    assert not overflows_v1(much, Limits())
    assert not overflows_v1(much, SMALL, is_on=False)
    assert overflows_v1(much, SMALL)


def test_the_formula_of_today_at_its_boundaries() -> None:
    usable = usable_tokens(LARGE)
    assert usable == 200_000 - 32_000 - 20_000
    assert not overflows_v2(Count(total_tokens=usable - 1), LARGE)
    assert overflows_v2(Count(total_tokens=usable), LARGE)
    parts = Count(input_tokens=usable - 3, output_tokens=1, cache_read_tokens=1, cache_write_tokens=1)
    assert overflows_v2(parts, LARGE)
    assert not overflows_v2(Count(input_tokens=usable - 3, output_tokens=1, cache_read_tokens=1), LARGE)


def test_a_declared_input_limit_counts_alone() -> None:
    limits = Limits(context_tokens=400_000, input_tokens=272_000, output_tokens=128_000)
    assert usable_tokens(limits) == 272_000 - 20_000
    assert usable_tokens(limits, reserved_tokens=1_000) == 271_000


def test_the_reserve_is_no_longer_than_the_answer() -> None:
    assert usable_tokens(SMALL) == 100_000 - 5_000 - 5_000


def test_nothing_is_reserved_where_limits_are_unknown() -> None:
    much = Count(total_tokens=10**9)
    assert not overflows_v2(much, Limits(input_tokens=5, output_tokens=5))
    assert not overflows_v2(much, LARGE, is_on=False)
    assert overflows_v2(much, LARGE)


def test_numbers_that_leave_nothing_decide_nothing() -> None:
    tiny = Limits(context_tokens=4_096)
    assert usable_tokens(tiny) == usable_tokens(tiny, Formula.V1) == 0
    assert not overflows(Count(total_tokens=4_000), tiny, Formula.V2)
    assert not overflows(Count(input_tokens=4_000), tiny, Formula.V1)


def test_the_formula_is_chosen() -> None:
    between = Count(input_tokens=90_000)
    assert overflows(between, SMALL, Formula.V2)
    assert not overflows(between, SMALL, Formula.V1)


def estimated(tokens: int) -> Count:
    return Count(input_tokens=tokens, is_estimate=True)


def test_an_estimate_beyond_the_context_less_answer_or_buffer() -> None:
    for limits, usable in [(SMALL, 80_000), (LARGE, 200_000 - 32_000), (Limits(context_tokens=32_000), 0)]:
        assert usable_tokens(limits, Formula.V3) == usable
    assert not overflows(estimated(80_000), SMALL, Formula.V3)
    assert overflows(estimated(80_001), SMALL, Formula.V3)
    assert not overflows(estimated(95_000), SMALL, Formula.V3, reserved_tokens=1_000)
    assert overflows(estimated(95_001), SMALL, Formula.V3, reserved_tokens=1_000)


def test_what_a_provider_counted_does_not_matter() -> None:
    assert not overflows(Count(input_tokens=99_000, total_tokens=99_999), SMALL, Formula.V3)


@pytest.mark.parametrize(("formula", "least"), [(Formula.V3, 20_000), (Formula.RESERVE, 16_384)])
def test_a_context_that_is_no_larger_than_the_reserve_keeps_the_answer_free_alone(formula: Formula, least: int) -> None:
    assert usable_tokens(Limits(context_tokens=least, output_tokens=4_000), formula) == least - 4_000
    assert usable_tokens(Limits(context_tokens=least + 5, output_tokens=4_000), formula) == 5
    assert usable_tokens(Limits(context_tokens=least), formula) == 0  # an answer of unknown length takes all of it


def test_nine_tenths_of_the_window_by_what_went_in() -> None:
    assert usable_tokens(SMALL, Formula.SHARE) == 90_000
    parts = Count(input_tokens=80_000, cache_read_tokens=9_999, cache_write_tokens=1, output_tokens=50_000)
    assert not overflows(parts, SMALL, Formula.SHARE)
    assert not overflows(Count(input_tokens=90_000, total_tokens=140_000), SMALL, Formula.SHARE)
    for one_more in (Count(input_tokens=90_001), estimated(90_001)):
        assert overflows(one_more, SMALL, Formula.SHARE)
    assert overflows(Count(input_tokens=80_000, cache_read_tokens=9_999, cache_write_tokens=2), SMALL, Formula.SHARE)
    assert usable_tokens(SMALL, Formula.SHARE, share_percent=50) == 50_000


def test_everything_beyond_the_context_less_a_reserve() -> None:
    usable = 100_000 - 16_384
    assert usable_tokens(SMALL, Formula.RESERVE) == usable_tokens(Limits(context_tokens=100_000), Formula.RESERVE)
    assert not overflows(Count(input_tokens=usable - 1, output_tokens=1), SMALL, Formula.RESERVE)
    assert overflows(Count(input_tokens=usable, output_tokens=1), SMALL, Formula.RESERVE)
    assert overflows(Count(total_tokens=usable + 1), SMALL, Formula.RESERVE)
    assert overflows(estimated(usable + 1), SMALL, Formula.RESERVE)
    assert usable_tokens(SMALL, Formula.RESERVE, reserved_tokens=1_000) == 99_000


def test_what_a_model_takes_as_input_bounds_every_formula() -> None:
    declared = Limits(context_tokens=400_000, input_tokens=272_000, output_tokens=4_000)
    assert usable_tokens(declared, Formula.V3) == usable_tokens(declared, Formula.RESERVE) == 272_000
    assert usable_tokens(declared, Formula.SHARE) == 244_800


@pytest.mark.parametrize("formula", list(Formula))
def test_formulas_are_silent_for_an_unknown_context(formula: Formula) -> None:
    assert usable_tokens(Limits(input_tokens=5, output_tokens=5), formula) == 0
    assert not overflows(estimated(10**9), Limits(), formula)


def test_cached_tokens_are_counted_once() -> None:
    count = counted(Usage(input_tokens=100, cached_tokens=40, output_tokens=7, reasoning_tokens=3))
    assert (count.input_tokens, count.cache_read_tokens, count.output_tokens) == (60, 40, 7)


def test_everything_that_is_sent_is_estimated() -> None:
    picture = FileContent(media_type="image/png", data=b"\x89" * 4000)
    call = ToolCallContent(call_id="c", tool_name="add", input={"a": "x" * 400})
    request = ModelRequest(
        system="s" * 400,
        messages=(
            UserMessage(content=(TextContent(text="u" * 400), picture)),
            AssistantMessage(content=(ReasoningContent(text="r" * 400), TextContent(text="t" * 400), call)),
            ToolMessage(call_id="c", tool_name="add", output="o" * 400),
            ToolMessage(call_id="d", tool_name="add", output={"rows": "o" * 400}),
        ),
        tools=(ToolSpec(name="add", description="d" * 400, input_schema={"type": "object", "title": "n" * 400}),),
    )
    total = estimate_request(request)
    assert 900 < total < 900 + 4 * 4 + 40
    assert estimate_request(request, len) > 3600
