"""The facts of models that are known by name: title, limits, price, reasoning efforts, parameters, input media. Pure.

The one list of the product. Figures are those that vendors publish for their own service. The same weights on a private
server have whatever context that server was started with, so open models have no limits here: their server reports
them, or the settings do. How the facts of one model are put together with the settings: `chat/llm/catalogue.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, TypeAlias, TypeVar

from chat.core.model.overflow import Limits
from chat.core.model.prices import Price

Parameter: TypeAlias = Literal["temperature", "top_p", "max_output_tokens"]
"""A basic parameter of a model call that people may choose."""

Medium: TypeAlias = Literal["image", "document"]
"""A kind of file that a model reads besides text."""

SAMPLING: Final[tuple[Parameter, ...]] = ("temperature", "top_p", "max_output_tokens")
"""The parameters of models that take all of them; also of models that are not in the list."""

LENGTH: Final[tuple[Parameter, ...]] = ("max_output_tokens",)
"""The parameters of reasoning models that refuse sampling."""

_EFFORTS: Final = ("low", "medium", "high")
_EVERYTHING: Final[tuple[Medium, ...]] = ("image", "document")
_IMAGES: Final[tuple[Medium, ...]] = ("image",)

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Facts about the models whose name begins with a key. `None`: what a shorter key says holds here as well.

    `title` and `price` are of the model that has exactly this name, or a version of it. Prices are per million tokens,
    in US dollars.
    """

    title: str = ""
    limits: Limits | None = None
    price: Price | None = None
    reasoning_efforts: tuple[str, ...] | None = None
    parameters: tuple[Parameter, ...] | None = None
    inputs: tuple[Medium, ...] | None = None


def find_fact(name: str, read: Callable[[ModelFacts], Fact | None]) -> Fact | None:
    """One fact of a model by the longest key that its name begins with and that says it; `None` when none does.

    Shape: `name` without its provider.
    """
    known = [key for key, facts in CATALOGUE.items() if name.startswith(key) and read(facts) is not None]
    return read(CATALOGUE[max(known, key=len)]) if known else None


def _limits(context_tokens: int, output_tokens: int, input_tokens: int = 0) -> Limits:
    return Limits(context_tokens=context_tokens, output_tokens=output_tokens, input_tokens=input_tokens)


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

CATALOGUE: Final[Mapping[str, ModelFacts]] = {
    "gpt-5": ModelFacts(
        title="GPT-5",
        limits=_limits(400_000, 128_000, 272_000),
        price=_price("1.25 10", cache_read="0.125"),
        reasoning_efforts=("minimal", *_EFFORTS),
        parameters=LENGTH,
        inputs=_EVERYTHING,
    ),
    "gpt-5.": ModelFacts(reasoning_efforts=("none", *_EFFORTS)),
    "gpt-5-mini": ModelFacts(title="GPT-5 mini", price=_price("0.25 2", cache_read="0.025")),
    "gpt-5-nano": ModelFacts(title="GPT-5 nano", price=_price("0.05 0.40", cache_read="0.005")),
    "gpt-5-chat": ModelFacts(
        title="GPT-5 chat", limits=_limits(128_000, 16_384), reasoning_efforts=(), parameters=SAMPLING
    ),
    "gpt-4.1": ModelFacts(
        title="GPT-4.1",
        limits=_limits(1_047_576, 32_768),
        price=_price("2 8", cache_read="0.50"),
        reasoning_efforts=(),
        inputs=_EVERYTHING,
    ),
    "gpt-4.1-mini": ModelFacts(title="GPT-4.1 mini", price=_price("0.40 1.60", cache_read="0.10")),
    "gpt-4.1-nano": ModelFacts(title="GPT-4.1 nano", price=_price("0.10 0.40", cache_read="0.025")),
    "gpt-4o": ModelFacts(
        title="GPT-4o",
        limits=_limits(128_000, 16_384),
        price=_price("2.50 10", cache_read="1.25"),
        inputs=_EVERYTHING,
    ),
    "gpt-4o-mini": ModelFacts(title="GPT-4o mini", price=_price("0.15 0.60", cache_read="0.075")),
    "gpt-4-turbo": ModelFacts(title="GPT-4 Turbo", limits=_limits(128_000, 4_096), inputs=_IMAGES),
    "gpt-4": ModelFacts(title="GPT-4", limits=_limits(8_192, 8_192), reasoning_efforts=(), inputs=()),
    "gpt-3.5-turbo": ModelFacts(title="GPT-3.5 Turbo", limits=_limits(16_385, 4_096), reasoning_efforts=(), inputs=()),
    "gpt-oss": ModelFacts(reasoning_efforts=_EFFORTS, inputs=()),
    "o1": ModelFacts(
        title="o1",
        limits=_limits(200_000, 100_000),
        reasoning_efforts=_EFFORTS,
        parameters=LENGTH,
        inputs=_EVERYTHING,
    ),
    "o3": ModelFacts(
        title="o3",
        limits=_limits(200_000, 100_000),
        price=_price("2 8", cache_read="0.50"),
        reasoning_efforts=_EFFORTS,
        parameters=LENGTH,
        inputs=_EVERYTHING,
    ),
    "o3-mini": ModelFacts(title="o3-mini", inputs=()),
    "o4-mini": ModelFacts(
        title="o4-mini",
        limits=_limits(200_000, 100_000),
        price=_price("1.10 4.40", cache_read="0.275"),
        reasoning_efforts=_EFFORTS,
        parameters=LENGTH,
        inputs=_EVERYTHING,
    ),
    "claude-": ModelFacts(reasoning_efforts=(), inputs=_EVERYTHING),
    "claude-3": ModelFacts(limits=_limits(200_000, 4_096)),
    "claude-3-5": ModelFacts(limits=_limits(200_000, 8_192)),
    "claude-3-5-haiku": ModelFacts(
        title="Claude 3.5 Haiku", price=_price("0.80 4", cache_read="0.08", cache_write="1")
    ),
    "claude-3-7": ModelFacts(limits=_limits(200_000, 64_000)),
    "claude-opus-4": ModelFacts(
        title="Claude Opus 4",
        limits=_limits(200_000, 32_000),
        price=_price("15 75", cache_read="1.50", cache_write="18.75"),
    ),
    "claude-opus-4-1": ModelFacts(
        title="Claude Opus 4.1", price=_price("15 75", cache_read="1.50", cache_write="18.75")
    ),
    "claude-sonnet-4": ModelFacts(title="Claude Sonnet 4", limits=_limits(200_000, 64_000), price=_SONNET),
    "claude-sonnet-4-5": ModelFacts(title="Claude Sonnet 4.5", price=_SONNET),
    "claude-haiku-4": ModelFacts(limits=_limits(200_000, 64_000)),
    "claude-haiku-4-5": ModelFacts(
        title="Claude Haiku 4.5", price=_price("1 5", cache_read="0.10", cache_write="1.25")
    ),
    "gemini-": ModelFacts(inputs=_EVERYTHING),
    "gemini-1.5": ModelFacts(limits=_limits(1_048_576, 8_192), reasoning_efforts=()),
    "gemini-2.0": ModelFacts(limits=_limits(1_048_576, 8_192), reasoning_efforts=()),
    "gemini-2.5": ModelFacts(limits=_limits(1_048_576, 65_536), reasoning_efforts=_EFFORTS),
    "gemini-2.5-pro": ModelFacts(
        title="Gemini 2.5 Pro",
        price=_price("1.25 10", cache_read="0.31", long=_price("2.50 15", cache_read="0.625")),
    ),
    "gemini-2.5-flash": ModelFacts(title="Gemini 2.5 Flash", price=_price("0.30 2.50", cache_read="0.075")),
}
"""By the beginning of a model's name, without its provider. List prices as published in the middle of 2025.

Prices change: `THINK_PRICES`, `THINK_MODEL_LIMITS` and `THINK_MODEL_FACTS` go before what stands here.
"""

PUBLISHED: Final[Mapping[str, Price]] = {
    key: facts.price for key, facts in CATALOGUE.items() if facts.price is not None
}
"""The list prices among them, as `find_price` takes them."""
