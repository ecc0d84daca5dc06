"""The price of a conversation's next message, before it is sent: from how little to how much. Reads only.

What will be read is known, nearly; how much is written, how often the model is asked within the turn, and what of the
input its server still has in its cache are not. So it is an interval, from what the last turns of the conversation did.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from chat.core.model.language_model import Usage
from chat.core.model.prices import Price, cost_of, find_price
from chat.llm.prices import price_table
from chat.llm.registry import reported_price
from chat.models import Turn
from chat.reads.preview import Preview
from thinkproject.kernel.aio import db

LOOKS_AT: Final = 20
"""The newest turns that say what is typical."""
USUAL_OUTPUT: Final = (100, 800)
"""Tokens of an answer where the conversation has none yet: a few sentences, or a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPrice:
    """From `low` to `high`, in the currency of the price table (US dollars)."""

    model: str
    low: Decimal
    high: Decimal
    input_tokens: int
    output_tokens: tuple[int, int]


async def next_price(instance_id: str, seen: Preview) -> NextPrice | None:
    """The price of answering one more message, of the model that would answer; nothing where it has no price.

    `seen`: the preview of the next call. One query.
    """
    price = await db(_price_of, seen.model)
    if price is None:
        return None
    written, steps = await db(_typical, instance_id)
    return NextPrice(
        model=seen.model,
        low=_cost(seen.total_tokens, written[0], steps[0], price, is_cached=True),
        high=_cost(seen.total_tokens, written[1], steps[1], price, is_cached=False),
        input_tokens=seen.total_tokens,
        output_tokens=written,
    )


def _price_of(model: str) -> Price | None:
    """No price and a price of nothing are the same for people: a model of one's own machine."""
    price = find_price([model], price_table()) or reported_price(model)
    return price if price is not None and (price.input or price.output) else None


def _cost(read: int, written: int, steps: int, price: Price, *, is_cached: bool) -> Decimal:
    """Each step reads all that is there, from its server's cache at best."""
    first = cost_of(Usage(input_tokens=read, output_tokens=written, cached_tokens=read if is_cached else 0), price)
    more = cost_of(Usage(input_tokens=read, output_tokens=0, cached_tokens=read if is_cached else 0), price)
    return first + more * (steps - 1)


def _typical(instance_id: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The middle half of what the newest turns wrote, and of how many steps they took."""
    turns = Turn.objects.filter(instance_id=instance_id, output_tokens__gt=0).order_by("-position")
    found = list(turns.values_list("output_tokens", "step_count")[:LOOKS_AT])
    if not found:
        return USUAL_OUTPUT, (1, 1)
    written, steps = sorted(row[0] for row in found), sorted(max(1, row[1]) for row in found)
    return _middle(written), _middle(steps)


def _middle(ordered: list[int]) -> tuple[int, int]:
    quarter = len(ordered) // 4
    return ordered[quarter], ordered[-1 - quarter]
