"""Schemas of what conversations cost, and of the limits of that."""

from decimal import Decimal
from typing import Annotated

from ninja import Field, Schema

from chat.http.api.schemas.common import Input
from chat.http.api.schemas.from_values import Amount


class UsageOut(Schema):
    """Token counts of the providers, and their cost by the price table. Input includes cached tokens."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost: Amount
    session_count: int


class SpendingOut(Schema):
    """Usage of a conversation: its own, its sub-agents', and both."""

    own: UsageOut
    sub_agents: UsageOut
    total: UsageOut


class BudgetIn(Input):
    """The cost limit of a session, in the currency of the price table; null: no limit."""

    max_cost: Annotated[Decimal, Field(ge=0, lt=1_000_000_000, max_digits=19, decimal_places=10)] | None


class BudgetOut(Schema):
    """The cost of a session including sub-agents, and its limit."""

    cost: Amount
    max_cost: Amount | None
