"""Costs of a turn, written to its row and its session in the transaction that ends it."""

from decimal import Decimal
from typing import Any

from chat.core.loop.totals import CostOf, TurnTotals
from chat.core.model.language_model import Usage
from chat.core.model.prices import NOTHING, cost_of, find_price
from chat.llm.prices import price_table
from chat.llm.registry import reported_price
from chat.models import AgentInstance, SideCall, SideCallKind, Turn
from sessions_app.messages.usage import SessionUsage, add_usage
from sessions_app.models import Session
from tools_app.workspace.turn_files import count_in_turn

TOKENS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")


def price_calls() -> CostOf:
    """A function from model calls to their cost at current prices. A model without a price costs nothing.

    The price is the table's, else the one that the model's server reported.
    """
    table = price_table()

    def cost(names: tuple[str, ...], usage: Any) -> Any:
        price = find_price(filter(None, names), table) or reported_price(names[0])
        return NOTHING if price is None else cost_of(usage, price)

    return cost


def usage_of_call(usage: Usage, cost: Decimal) -> SessionUsage:
    """Usage of model calls, as added to a session."""
    return SessionUsage(**{name: getattr(usage, name) for name in TOKENS}, cost=cost)


def count_side_call(session_id: str, kind: SideCallKind, model_name: str, used: SessionUsage) -> None:
    """Add what is no part of an answer to its session, and to the usage of its conversation by kind and model.

    Where the conversation is gone nothing is counted; a call that used nothing has no row. Three statements.
    """
    if not add_usage(session_id, used) or used == SessionUsage():
        return
    of_session = Session.objects.filter(pk=session_id).values("scope")
    instance = AgentInstance.everything.filter(pk__in=of_session).only("pk").first()
    if instance is None:
        return
    SideCall.objects.create(
        instance=instance,
        kind=kind,
        model_name=model_name[:200],
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        cost=used.cost,
    )


def used_since(totals: TurnTotals, before: SessionUsage) -> SessionUsage | None:
    """Subtract from a turn's usage the part that its row has; nothing where nothing is left.

    A turn that was given up and then run again is counted again from its journal: the session gets the difference.
    """
    more = {name: getattr(totals.usage, name) - getattr(before, name) for name in TOKENS}
    cost = totals.cost - before.cost
    return SessionUsage(**more, cost=cost) if cost or any(more.values()) else None


def usage_of_turn(turn: Turn) -> SessionUsage:
    """The usage that a turn's row has, which is part of its session's."""
    return SessionUsage(**{name: getattr(turn, name) for name in (*TOKENS, "cost")})


def write_costs(turn_id: str, session_id: str, totals: TurnTotals) -> None:
    """Store the usage of a turn that was given up, and add the difference to its session."""
    turn = Turn.objects.filter(pk=turn_id).first()
    if turn is None:
        return
    more = used_since(totals, usage_of_turn(turn))
    used = {name: getattr(totals.usage, name) for name in TOKENS} | {"cost": totals.cost}
    facts = {"model_name": totals.model_name[:200], "step_count": totals.steps, "model_report": totals.report}
    Turn.objects.filter(pk=turn_id).update(**used, **facts, changed_file_count=count_in_turn(turn_id))
    if more is not None:
        add_usage(session_id, more, model_name=totals.model_name)
