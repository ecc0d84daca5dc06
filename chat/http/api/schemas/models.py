"""Schemas of agents, of models, and of what people choose among them."""

from typing import Literal

from ninja import Schema

from chat.http.api.schemas.common import InstanceOut
from chat.http.api.schemas.from_values import Amount


class CommandOut(Schema):
    """A slash command: a message `/name` becomes its template. `takes_text`: words behind it have a place in that."""

    name: str
    description: str
    takes_text: bool


class AgentOut(Schema):
    """An agent class that is served, as it looks to people.

    `icon`: a symbol of the page; where the agent has a file of its own, `icon_url` is its address, else null.
    `suggestions`: prompts for an empty conversation. `is_listed`: people are offered it to begin a conversation with.
    `delivery`: what a message does while it answers, where the message says nothing else. `commands`: its own, besides
    those that every conversation has (undo, redo, compact, title). `has_shell`: a message `!script` runs the script.
    `thread_agent`: it keeps threads, which this agent answers; null for any other.
    """

    name: str
    title: str
    description: str
    icon: str
    icon_url: str | None
    suggestions: list[str]
    is_listed: bool
    delivery: Literal["queue", "steer", "interrupt"]
    commands: list[CommandOut]
    has_shell: bool
    thread_agent: str | None


class ModelOut(Schema):
    """The model that answers by default. `hint`: how to connect a better one."""

    name: str
    kind: str
    is_small: bool
    hint: str


class PricesOut(Schema):
    """Prices per million tokens, in the currency of the price table. `cached_input`: null where it costs as any."""

    input: Amount
    output: Amount
    cached_input: Amount | None


class OfferedModelOut(Schema):
    """A model that can be chosen. Null is unknown.

    `reasoning_efforts` and `parameters`: what can be chosen for it. `inputs`: the files that it reads besides text.
    `calls_tools`: whether it calls tools; `reasons`: whether it thinks before it answers, as `probe_model` found.
    `is_default`: the agent's own model, which answers without a choice.
    """

    name: str
    title: str
    provider: str
    context_tokens: int | None
    max_output_tokens: int | None
    prices: PricesOut | None
    reasoning_efforts: list[str]
    parameters: list[str]
    inputs: list[str] | None
    calls_tools: bool | None
    reasons: bool | None
    is_default: bool


class OfferedModelsOut(Schema):
    """The models that can be chosen for conversations with an agent; none where nothing can be chosen."""

    items: list[OfferedModelOut]


class InstanceDetailOut(InstanceOut):
    """A conversation with the model that answers next.

    `model`: the name of the model that answers the next turn, null
    where it is not known. `model_notice`: what of the choice does not count and why, empty when all of it does.
    """

    model: str | None
    model_notice: str
