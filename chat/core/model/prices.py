"""The cost of a model call: exact decimals from the provider's token counts. Pure.

Prices are per million tokens, in one currency (the table below: US dollars). Reasoning is part of the output and has
its price. A request whose input is beyond 200,000 tokens is paid by the price of long requests, all of it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from chat.core.model.language_model import Usage
from thinkproject.kernel.jsonvalue import JSONValue

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
    for name in names:
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


def _price(
    rates: str, *, cache_read: str | None = None, cache_write: str | None = None, long: Price | None = None
) -> Price:
    paid_in, paid_out = map(Decimal, rates.split())
    return Price(
        input=paid_in,
        output=paid_out,
        cache_read=None if cache_read is None else Decimal(cache_read),
        cache_write=None if cache_write is None else Decimal(cache_write),
        long=long,
    )


_SONNET: Final = _price(
    "3 15", cache_read="0.30", cache_write="3.75", long=_price("6 22.50", cache_read="0.60", cache_write="7.50")
)

PUBLISHED: Final[Mapping[str, Price]] = {
    "gpt-5": _price("1.25 10", cache_read="0.125"),
    "gpt-5-mini": _price("0.25 2", cache_read="0.025"),
    "gpt-5-nano": _price("0.05 0.40", cache_read="0.005"),
    "gpt-4.1": _price("2 8", cache_read="0.50"),
    "gpt-4.1-mini": _price("0.40 1.60", cache_read="0.10"),
    "gpt-4.1-nano": _price("0.10 0.40", cache_read="0.025"),
    "gpt-4o": _price("2.50 10", cache_read="1.25"),
    "gpt-4o-mini": _price("0.15 0.60", cache_read="0.075"),
    "o3": _price("2 8", cache_read="0.50"),
    "o4-mini": _price("1.10 4.40", cache_read="0.275"),
    "claude-opus-4": _price("15 75", cache_read="1.50", cache_write="18.75"),
    "claude-opus-4-1": _price("15 75", cache_read="1.50", cache_write="18.75"),
    "claude-sonnet-4": _SONNET,
    "claude-sonnet-4-5": _SONNET,
    "claude-haiku-4-5": _price("1 5", cache_read="0.10", cache_write="1.25"),
    "claude-3-5-haiku": _price("0.80 4", cache_read="0.08", cache_write="1"),
    "gemini-2.5-pro": _price("1.25 10", cache_read="0.31", long=_price("2.50 15", cache_read="0.625")),
    "gemini-2.5-flash": _price("0.30 2.50", cache_read="0.075"),
}
"""List prices in US dollars as published in the middle of 2025. Prices change: `THINK_PRICES` goes before these."""
