"""The limits of a model: from the settings, else from its server, else from the catalogue by the model's name.

Nothing known is 0, and then nothing is decided by counting.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from chat.core.model.catalogue import find_fact
from chat.core.model.overflow import OUTPUT_TOKEN_MAX, Limits
from chat.llm.conf import llm_settings
from thinkproject.kernel.jsonvalue import JSONObject

Value = TypeVar("Value")

_OUTPUT_SHARE: Final = 4  # a quarter of the context is reserved for an answer of unknown maximum length


def model_limits(name: str, reported: tuple[str, int] = ("", 0)) -> Limits:
    """Return the limits of the model `provider/model`; zeros where they are unknown.

    `reported` is the report of a model's server at discovery: the model's name and its context in tokens. The longest
    answer may be a guess: see `with_output`.
    """
    return with_output(declared_limits(name, reported))


def declared_limits(name: str, reported: tuple[str, int] = ("", 0)) -> Limits:
    """The same without a guess."""
    configured = _longest(llm_settings.model_limits, name)
    if configured is not None:
        return _read(configured)
    if reported[1] and reported[0] == name:
        return Limits(context_tokens=reported[1])
    return find_fact(name.rpartition("/")[2], lambda facts: facts.limits) or Limits()


def with_output(limits: Limits) -> Limits:
    """The same, with a guess at the longest answer where none is known: a quarter of the context."""
    if limits.output_tokens or not limits.context_tokens:
        return limits
    guess = min(OUTPUT_TOKEN_MAX, limits.context_tokens // _OUTPUT_SHARE)
    return Limits(context_tokens=limits.context_tokens, output_tokens=guess, input_tokens=limits.input_tokens)


def _longest(table: Mapping[str, Value], name: str) -> Value | None:
    found = max((prefix for prefix in table if name.startswith(prefix)), key=len, default=None)
    return None if found is None else table[found]


def _read(configured: JSONObject) -> Limits:
    context, output, own_input = (_tokens(configured.get(key)) for key in ("context", "output", "input"))
    return Limits(context_tokens=context, output_tokens=output, input_tokens=own_input)


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
