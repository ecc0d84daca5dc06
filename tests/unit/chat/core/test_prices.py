"""What a call costs: exact, by the tier of the request, and only where a price is known."""

from decimal import Decimal
from typing import Any

import pytest

from chat.core.model.catalogue import PUBLISHED
from chat.core.model.language_model import Usage
from chat.core.model.prices import Price, cost_of, find_price, read_prices
from chat.llm.adapters.usage import read_usage

LONG = Price(input=Decimal(6), output=Decimal(20), cache_read=Decimal("0.6"), cache_write=Decimal("7.5"))
PRICE = Price(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"), long=LONG)


def test_costs_are_exact_decimals() -> None:
    used = Usage(input_tokens=100_000, cached_tokens=40_000, cache_write_tokens=10_000, output_tokens=2_000)
    # 50,000 at 3, 40,000 at 0.30, 10,000 at 3.75, 2,000 at 15
    assert cost_of(used, PRICE) == Decimal("0.15") + Decimal("0.012") + Decimal("0.0375") + Decimal("0.03")


def test_reasoning_has_the_price_of_output() -> None:
    assert cost_of(Usage(output_tokens=1_000, reasoning_tokens=900), PRICE) == Decimal("0.015")


@pytest.mark.parametrize(("tokens", "cost"), [(200_000, "0.6"), (200_001, "1.200006")])
def test_more_than_200k_is_another_tier(tokens: int, cost: str) -> None:
    assert cost_of(Usage(input_tokens=tokens), PRICE) == Decimal(cost)


def test_a_single_token_is_not_lost() -> None:
    assert cost_of(Usage(input_tokens=1), PUBLISHED["gpt-5-nano"]) == Decimal("0.00000005")


def test_cached_input_without_a_price_of_its_own_is_paid_as_input() -> None:
    used = Usage(input_tokens=1_000_000, cached_tokens=500_000, cache_write_tokens=500_000)
    assert cost_of(used, Price(input=Decimal(2), output=Decimal(0))) == 2


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10}},
        {"prompt_tokens": 100, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10},  # a proxy's
        {"input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10},  # counted apart
        {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10}},  # cannot be
    ],
)
def test_input_includes_cached_tokens_of_every_provider(usage: dict[str, Any]) -> None:
    assert read_usage(usage) == Usage(input_tokens=100, cached_tokens=60, cache_write_tokens=10)


@pytest.mark.parametrize(
    "usage",
    [
        {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 40}, "total_tokens": 50},
        {"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 40}, "total_tokens": 50},
        {"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 40}},
    ],
)
def test_output_includes_reasoning_of_every_provider(usage: dict[str, Any]) -> None:
    assert read_usage(usage) == Usage(output_tokens=50, reasoning_tokens=40)


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (["openai/gpt-5-mini"], "gpt-5-mini"),
        (["openai/gpt-5-mini-2025-08-07"], "gpt-5-mini"),
        (["openrouter/anthropic/claude-sonnet-4"], "claude-sonnet-4"),
        (["acme/model", "gpt-4.1"], "gpt-4.1"),  # what the provider says it was, where the name asked for has none
        (["openai/gpt-5-mini-turbo"], None),
        (["local/smollm2-135m", ""], None),
    ],
)
def test_a_price_is_found_by_name_and_version(names: list[str], key: str | None) -> None:
    assert find_price(names, PUBLISHED) == (None if key is None else PUBLISHED[key])


def test_a_provider_may_have_a_price_of_its_own() -> None:
    own = read_prices({"acme/gpt-5": {"input": 1, "output": "2.5"}})
    assert find_price(["acme/gpt-5"], {**PUBLISHED, **own}) == Price(input=Decimal(1), output=Decimal("2.5"))
    assert find_price(["openai/gpt-5"], {**PUBLISHED, **own}) == PUBLISHED["gpt-5"]


def test_prices_of_the_settings() -> None:
    entry = {"input": 3, "output": 15, "cache_read": "0.3", "above_200k": {"input": 6, "output": 22.5}}
    price = read_prices({"m": entry})["m"]
    assert price.cache_read == Decimal("0.3")
    assert price.long == Price(input=Decimal(6), output=Decimal("22.5"))


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"input": 1},
        {"input": 1, "output": -1},
        {"input": True, "output": 1},
        {"input": "NaN", "output": 1},
        {"input": 1, "output": 1, "inptu": 2},
        {"input": 1, "output": 1, "above_200k": {"input": 1, "output": 1, "above_200k": {}}},
    ],
)
def test_a_price_that_is_none_names_its_model(entry: Any) -> None:
    with pytest.raises(ValueError, match="acme/m"):
        read_prices({"acme/m": entry})
