"""Costs of a turn, written to its row and its session in the transaction that ends it."""

from decimal import Decimal
from typing import Any

from chat.core.loop.loop import CostOf, TurnTotals
from chat.core.model.language_model import Usage
from chat.core.model.prices import NOTHING, cost_of, find_price
from chat.llm.prices import price_table
from chat.models import Turn
from sessions_app.messages.usage import SessionUsage, add_usage

TOKENS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")


def price_calls() -> CostOf:
    """A function from model calls to their cost at current prices. A model without a price costs nothing."""
    table = price_table()

    def cost(names: tuple[str, ...], usage: Any) -> Any:
        price = find_price(filter(None, names), table)
        return NOTHING if price is None else cost_of(usage, price)

    return cost


def usage_of_call(usage: Usage, cost: Decimal) -> SessionUsage:
    """Usage of model calls, as added to a session."""
    return SessionUsage(**{name: getattr(usage, name) for name in TOKENS}, cost=cost)


def write_costs(turn_id: str, session_id: str, totals: TurnTotals) -> None:
    """Store a turn's usage, and add the difference to its session.

    A turn that was given up and then run again is counted again from its journal: the session gets the difference.
    """
    used = {name: getattr(totals.usage, name) for name in TOKENS} | {"cost": totals.cost}
    before = Turn.objects.filter(pk=turn_id).values(*used).first()
    if before is None:
        return
    Turn.objects.filter(pk=turn_id).update(**used, model_name=totals.model_name[:200], step_count=totals.steps)
    more = {name: value - before[name] for name, value in used.items()}
    if any(more.values()):
        add_usage(session_id, SessionUsage(**more), model_name=totals.model_name)
