"""The cost of a model call: exact decimals from the provider's token counts. Pure.

Prices are per million tokens, in one currency (the list prices of `catalogue.py`: US dollars). Reasoning is part of the
output and has its price. A request whose input is beyond 200,000 tokens is paid by the price of long requests, all of
it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, TypeVar

from chat.core.model.language_model import Usage
from thinkproject.kernel.jsonvalue import JSONValue

Value = TypeVar("Value")

LONG_TOKENS: Final = 200_000
NOTHING: Final = Decimal(0)
_MILLION: Final = Decimal(1_000_000)
_PLACES: Final = Decimal("1e-10")
_RATES: Final = ("input", "output", "cache_read", "cache_write")
_VERSION: Final = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{3}|-latest|@[\w.-]+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices of one model, per million tokens. Without a price of its own cached input is paid as any input.

    `long`: what is paid instead for a request whose input is beyond 200,000 tokens.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    long: "Price | None" = None


def cost_of(usage: Usage, price: Price) -> Decimal:
    """The cost of one model call, exact to ten places. Not of a sum of calls: each one has its own tier."""
    if price.long is not None and usage.input_tokens > LONG_TOKENS:
        price = price.long
    read, written = usage.cached_tokens, usage.cache_write_tokens
    total = (
        max(0, usage.input_tokens - read - written) * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return (total / _MILLION).quantize(_PLACES)


def find_price(names: Iterable[str], table: Mapping[str, Price]) -> Price | None:
    """The price of the first of these names that has one; `None` when none has.

    Shape: a name is `provider/model` or `model`. The table's key is the whole name, or its end behind a slash, so that
    a price holds at every provider; a date or another mark of a version behind the key is left out of account.
    """
    return next((price for name in names if (price := find_versioned(name, table)) is not None), None)


def find_versioned(name: str, table: Mapping[str, Value]) -> Value | None:
    """Find a model's entry of a table, by the same rule; `None` when it has none."""
    for ending in _endings(name):
        known = [key for key in table if _is_version(ending, key)]
        if known:
            return table[max(known, key=len)]
    return None


def _endings(name: str) -> list[str]:
    pieces = name.split("/")
    return ["/".join(pieces[start:]) for start in range(len(pieces)) if pieces[start]]


def _is_version(name: str, key: str) -> bool:
    return name.startswith(key) and _VERSION.fullmatch(name[len(key) :]) is not None


def read_prices(entries: Mapping[str, JSONValue]) -> dict[str, Price]:
    """Parse prices from the configuration.

    Shape: `{name: {"input", "output", "cache_read"?, "cache_write"?, "above_200k"?: the same}}`, numbers or texts.
    Errors: `ValueError`, which names the entry and what was expected.
    """
    return {name: _read(entry, name) for name, entry in entries.items()}


def _read(entry: JSONValue, name: str, *, is_long: bool = False) -> Price:
    allowed = _RATES if is_long else (*_RATES, "above_200k")
    if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys() or set(entry) - set(allowed):
        raise ValueError(f"The price of {name!r} must be an object with input and output, at most {', '.join(allowed)}")
    rates = {key: _rate(entry[key], f"{name} {key}") for key in _RATES if key in entry}
    long = _read(entry["above_200k"], f"{name} above_200k", is_long=True) if "above_200k" in entry else None
    return Price(**rates, long=long)


def _rate(value: JSONValue, what: str) -> Decimal:
    try:
        rate = Decimal(str(value))
    except InvalidOperation:
        rate = Decimal(-1)
    if isinstance(value, bool) or not rate.is_finite() or not 0 <= rate < _MILLION:
        raise ValueError(f"The price of {what} must be a number per million tokens, not {value!r}")
    return rate
