"""The facts of a model: `THINK_MODEL_FACTS`, limits and prices of the settings, then the product's list.

The list itself is `chat/core/model/catalogue.py`. Nothing here calls a model or the network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args

from chat.core.model.catalogue import CATALOGUE, SAMPLING, Medium, ModelFacts, Parameter, find_fact
from chat.core.model.chosen_model import Takes
from chat.core.model.overflow import Limits
from chat.core.model.prices import Price, find_price, find_versioned
from chat.llm.conf import llm_settings
from chat.llm.model_limits import declared_limits
from chat.llm.prices import price_table

KEYS: Final = ("title", "reasoning_efforts", "parameters", "inputs")
"""The fields of an entry of `THINK_MODEL_FACTS`."""

_TITLES: Final[Mapping[str, str]] = {key: facts.title for key, facts in CATALOGUE.items() if facts.title}
Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """The facts of one model. Nothing known: limits are 0, the price is `None`, there are no efforts to choose.

    `inputs`: the files that it reads besides text; `None` where only its server knows. `calls_tools`: as is
    declared, was found or its server reported; `reasons`: as was found, `None` where nothing was.
    """

    name: str
    title: str
    limits: Limits
    price: Price | None
    reasoning_efforts: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    inputs: tuple[Medium, ...] | None
    calls_tools: bool | None = None
    reasons: bool | None = None

    @property
    def provider(self) -> str:
        """The part of the name before the first slash."""
        return self.name.partition("/")[0]

    @property
    def takes(self) -> Takes:
        """The values that people may choose for it."""
        return Takes(
            reasoning_efforts=self.reasoning_efforts,
            parameters=self.parameters,
            max_output_tokens=self.limits.output_tokens,
        )


def known_model(name: str, reported: tuple[str, int] = ("", 0)) -> KnownModel:
    """The facts of the model `provider/model`. `reported`: as `model_limits` takes it."""
    own = _configured(name)
    bare = name.rpartition("/")[2]
    efforts = _first(own.reasoning_efforts, find_fact(bare, lambda facts: facts.reasoning_efforts))
    parameters = _first(own.parameters, find_fact(bare, lambda facts: facts.parameters))
    return KnownModel(
        name=name,
        title=own.title or find_versioned(name, _TITLES) or name.partition("/")[2] or name,
        limits=declared_limits(name, reported),
        price=find_price([name], price_table()),
        reasoning_efforts=efforts or (),
        parameters=SAMPLING if parameters is None else parameters,
        inputs=_first(own.inputs, find_fact(bare, lambda facts: facts.inputs)),
    )


def declared_inputs(name: str) -> tuple[Medium, ...] | None:
    """The media that the settings name for the model; `None` where they name none."""
    return _configured(name).inputs


def facts_problem(entry: object) -> str:
    """Why an entry of `THINK_MODEL_FACTS` cannot be read; empty when it can."""
    if not isinstance(entry, dict) or set(entry) - set(KEYS):
        return f"an entry is an object with at most {', '.join(KEYS)}"
    if not isinstance(entry.get("title", ""), str):
        return "title is a text"
    for key, known in (("reasoning_efforts", ()), ("parameters", get_args(Parameter)), ("inputs", get_args(Medium))):
        given = entry.get(key, [])
        is_list = isinstance(given, list | tuple) and all(isinstance(word, str) and word for word in given)
        if not is_list or (known and set(given) - set(known)):
            return f"{key} is a list of {', '.join(known) or 'texts'}"
    return ""


def _configured(name: str) -> ModelFacts:
    """The facts that the settings give, each by the longest key that says it."""
    given: dict[str, Any] = {}
    for key in sorted(llm_settings.model_facts, key=len):
        entry = llm_settings.model_facts[key]
        if name.startswith(key) and not facts_problem(entry):
            given |= {field: value if field == "title" else tuple(value) for field, value in entry.items()}
    return ModelFacts(**given)


def _first(*found: Fact | None) -> Fact | None:
    return next((fact for fact in found if fact is not None), None)
