"""A conversation's choice of a model and of its basic parameters: its shape, and whether a model takes it. Pure.

The shape is the same in the API, in frames and in the database. A field that is missing is `null`, and a choice of
nothing is no choice.
"""

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from chat.core.model.language_model import ModelSettings
from chat.errors import ModelChoiceInvalid
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.phrases import Phrase

MAX_NAME: Final = 200
MAX_EFFORT: Final = 32
MAX_TEMPERATURE: Final = 2.0
MAX_OUTPUT_TOKENS: Final = 10_000_000
"""No answer is longer, whatever is known of its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """A choice; `None` leaves a value to the agent. `model` is `provider/model`.

    Units: tokens. `temperature` is from 0 to 2, `top_p` above 0 and at most 1.
    """

    model: str | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None

    @property
    def settings(self) -> ModelSettings:
        """The parameters as requests take them."""
        return ModelSettings(
            reasoning_effort=self.reasoning_effort,
            temperature=self.temperature,
            top_p=self.top_p,
            max_output_tokens=self.max_output_tokens,
        )

    @property
    def has_parameters(self) -> bool:
        """Whether anything besides the model is chosen."""
        return replace(self, model=None) != NOTHING

    def to_json(self) -> JSONObject | None:
        """The stored shape, with all five fields; `None` for a choice of nothing."""
        return None if self == NOTHING else asdict(self)

    def without(self, names: Collection[str]) -> "ChosenModel":
        """The same without these fields."""
        return replace(self, **dict.fromkeys(names))


NOTHING: Final = ChosenModel()
FIELDS: Final = tuple(field.name for field in fields(ChosenModel))


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """The values that a model takes. `max_output_tokens` 0: unknown."""

    reasoning_efforts: tuple[str, ...] = ()
    parameters: Collection[str] = ()
    max_output_tokens: int = 0


def read_choice(value: JSONValue) -> ChosenModel:
    """Read the shape. Errors: `ModelChoiceInvalid`, which names the field and what was expected."""
    if value is None:
        return NOTHING
    if not isinstance(value, dict):
        raise ModelChoiceInvalid("A choice of a model is an object or null.", field="model_choice")
    for name in value:
        if name not in FIELDS:
            raise ModelChoiceInvalid(
                Phrase("A choice of a model has no field {name!r}.", name=name), field=name, allowed=list(FIELDS)
            )
    return ChosenModel(
        model=_text(value, "model", MAX_NAME),
        reasoning_effort=_text(value, "reasoning_effort", MAX_EFFORT),
        temperature=_number(value, "temperature", 0, MAX_TEMPERATURE),
        top_p=_number(value, "top_p", 0, 1, is_above=True),
        max_output_tokens=_count(value, "max_output_tokens"),
    )


def stored_choice(value: JSONValue) -> ChosenModel:
    """Read what was stored. What no version of today could have stored is a choice of nothing."""
    try:
        return read_choice(value)
    except ModelChoiceInvalid:
        return NOTHING


def refused_fields(choice: ChosenModel, takes: Takes) -> list[str]:
    """The chosen parameters that a model does not take, in the order of the fields."""
    refused = [
        name
        for name in ("temperature", "top_p", "max_output_tokens")
        if getattr(choice, name) is not None and name not in takes.parameters
    ]
    longest = takes.max_output_tokens
    if longest and (choice.max_output_tokens or 0) > longest and "max_output_tokens" not in refused:
        refused.append("max_output_tokens")
    effort = choice.reasoning_effort
    return [*(["reasoning_effort"] if effort is not None and effort not in takes.reasoning_efforts else []), *refused]


def check_parameters(choice: ChosenModel, model: str, takes: Takes) -> None:
    """Refuse what a model does not take. Errors: `ModelChoiceInvalid`."""
    for name in refused_fields(choice, takes):
        if name == "reasoning_effort":
            efforts = list(takes.reasoning_efforts)
            known = f"it knows {', '.join(efforts)}" if efforts else "none can be chosen for it"
            raise ModelChoiceInvalid(
                Phrase(
                    "{model} does not know the reasoning effort {reasoning_effort!r}; {known}.",
                    model=model,
                    reasoning_effort=choice.reasoning_effort,
                    known=known,
                ),
                field=name,
                allowed=efforts,
            )
        if name not in takes.parameters:
            raise ModelChoiceInvalid(
                Phrase("{model} does not take {name}.", model=model, name=name), field=name, allowed=[]
            )
        raise ModelChoiceInvalid(
            Phrase(
                "An answer of {model} has at most {output_tokens} tokens.",
                model=model,
                output_tokens=takes.max_output_tokens,
            ),
            field=name,
            allowed=[1, takes.max_output_tokens],
        )


def _text(value: JSONObject, name: str, limit: int) -> str | None:
    text = value.get(name)
    if text is None:
        return None
    if not isinstance(text, str) or not 1 <= len(text) <= limit or not text.isprintable():
        raise ModelChoiceInvalid(
            Phrase("{name} is a text of at most {limit} characters, or null.", name=name, limit=limit), field=name
        )
    return text


def _number(value: JSONObject, name: str, low: float, high: float, *, is_above: bool = False) -> float | None:
    number: Any = value.get(name)
    if number is None:
        return None
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not is_number or not low <= number <= high or (is_above and number == low):
        lowest = f"above {low:g}" if is_above else f"from {low:g}"
        raise ModelChoiceInvalid(
            Phrase("{name} is a number {lowest} to {high:g}, or null.", name=name, lowest=lowest, high=high),
            field=name,
            allowed=[low, high],
        )
    return float(number)


def _count(value: JSONObject, name: str) -> int | None:
    count: Any = value.get(name)
    if count is None:
        return None
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_OUTPUT_TOKENS:
        raise ModelChoiceInvalid(
            Phrase("{name} is a whole number from 1 to {limit}, or null.", name=name, limit=MAX_OUTPUT_TOKENS),
            field=name,
            allowed=[1, MAX_OUTPUT_TOKENS],
        )
    return count
