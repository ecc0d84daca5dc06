"""The limits of a model: from the settings, else from its server, else from a table by the model's name.

Figures of the table are those that vendors publish for their own service. The same weights on a private server
have whatever context that server was started with, so open models are not in it: their server reports it, or the
settings do. Nothing known is 0, and then nothing is decided by counting.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from chat.core.model.overflow import OUTPUT_TOKEN_MAX, Limits
from chat.llm.conf import llm_settings
from thinkproject.kernel.jsonvalue import JSONObject

Value = TypeVar("Value")

_OUTPUT_SHARE: Final = 4  # a quarter of the context is reserved for an answer of unknown maximum length


def _limits(context_tokens: int, output_tokens: int, input_tokens: int = 0) -> Limits:
    return Limits(context_tokens=context_tokens, output_tokens=output_tokens, input_tokens=input_tokens)


TABLE: Final[dict[str, Limits]] = {
    "gpt-5": _limits(400_000, 128_000, 272_000),
    "gpt-5-chat": _limits(128_000, 16_384),
    "gpt-4.1": _limits(1_047_576, 32_768),
    "gpt-4o": _limits(128_000, 16_384),
    "gpt-4-turbo": _limits(128_000, 4_096),
    "gpt-4": _limits(8_192, 8_192),
    "gpt-3.5-turbo": _limits(16_385, 4_096),
    "o1": _limits(200_000, 100_000),
    "o3": _limits(200_000, 100_000),
    "o4-mini": _limits(200_000, 100_000),
    "claude-3": _limits(200_000, 4_096),
    "claude-3-5": _limits(200_000, 8_192),
    "claude-3-7": _limits(200_000, 64_000),
    "claude-opus-4": _limits(200_000, 32_000),
    "claude-sonnet-4": _limits(200_000, 64_000),
    "claude-haiku-4": _limits(200_000, 64_000),
    "gemini-1.5": _limits(1_048_576, 8_192),
    "gemini-2.0": _limits(1_048_576, 8_192),
    "gemini-2.5": _limits(1_048_576, 65_536),
}
"""By the beginning of a model's name; of several that fit the longest counts."""


def model_limits(name: str, reported: tuple[str, int] = ("", 0)) -> Limits:
    """Return the limits of the model `provider/model`; zeros where they are unknown.

    `reported` is the report of a model's server at discovery: the model's name and its context in tokens.
    """
    configured = _longest(llm_settings.model_limits, name)
    if configured is not None:
        return with_output(_read(configured))
    if reported[1] and reported[0] == name:
        return with_output(Limits(context_tokens=reported[1]))
    return with_output(_longest(TABLE, name.rpartition("/")[2]) or Limits())


def with_output(limits: Limits) -> Limits:
    """The same, with a guess at the longest answer where none is known: a quarter of the context."""
    if limits.output_tokens or not limits.context_tokens:
        return limits
    guess = min(OUTPUT_TOKEN_MAX, limits.context_tokens // _OUTPUT_SHARE)
    return _limits(limits.context_tokens, guess, limits.input_tokens)


def _longest(table: Mapping[str, Value], name: str) -> Value | None:
    found = max((prefix for prefix in table if name.startswith(prefix)), key=len, default=None)
    return None if found is None else table[found]


def _read(configured: JSONObject) -> Limits:
    context, output, own_input = (_tokens(configured.get(key)) for key in ("context", "output", "input"))
    return _limits(context, output, own_input)


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
