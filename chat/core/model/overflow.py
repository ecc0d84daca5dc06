"""Whether a request fits into a model's context: five formulas, and the estimate where nothing was reported yet.

`v1` asks whether what was counted is more than what is left beside the answer; `v2` keeps a reserve besides, so that a
conversation is summarised before it is full. `v3` judges the request that is about to be sent, `share` what went in
against a share of the context, `reserve` everything against the context less a fixed number. A model of whose context
nothing is known never overflows by count: its provider's own error is all there is. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, assert_never

from chat.core.model.language_model import (
    FileContent,
    ModelMessage,
    ModelRequest,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolSpec,
    Usage,
)
from sessions_app.core.compaction.tokens import TOKENS_PER_MESSAGE, TokenCounter, length_over_four
from sessions_app.core.messages.forms import NO_FORMS
from thinkproject.kernel.jsonvalue import JSONValue, dump

OUTPUT_TOKEN_MAX: Final = 32_000
"""An answer is not counted on to be longer, whatever the model declares."""

RESERVED_TOKENS_MAX: Final = 20_000
"""The most that `v2` keeps free by default."""

BUFFER_TOKENS: Final = 20_000
"""The least that `v3` keeps free by default. The limit of a longer answer is kept free as a whole."""

FIXED_RESERVE_TOKENS: Final = 16_384
"""What `reserve` keeps free by default."""

LEAST_WINDOW: Final = 1_000
"""No server's window is smaller."""

CUT_RATIO: Final = 2.5
"""An estimate by length is this much too high only for text of many spaces."""

CUT_WORDS_RATIO: Final = 1.25
"""And the least number of tokens is never this much more than a true count."""

SHARE_PERCENT: Final = 90
"""The share of the context that `share` fills by default."""


class Formula(StrEnum):
    """The criterion of an overflow."""

    V1 = "v1"  # input, cache reads and output exceed the context less the longest answer
    V2 = "v2"  # all tokens reach the context less the longest answer and a reserve
    V3 = "v3"  # the estimate of a request exceeds the context less the longest answer or a buffer, the larger
    SHARE = "share"  # what went in exceeds a share of the context
    RESERVE = "reserve"  # all tokens exceed the context less a reserve


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A model's limits in tokens; 0: unknown. `input_tokens`: a separate input limit, where the model has one."""

    context_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def max_output_tokens(self) -> int:
        """The number of tokens reserved for an answer."""
        return min(self.output_tokens, OUTPUT_TOKEN_MAX) or OUTPUT_TOKEN_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Tokens of one model call. `input_tokens` without cache reads and writes; `total` where the provider reports it.

    `is_estimate`: an estimate of ours, for a request that was not sent yet.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    total_tokens: int = 0
    is_estimate: bool = False

    @property
    def all_input_tokens(self) -> int:
        """Input tokens, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def all_tokens(self) -> int:
        """The reported total, else the sum."""
        return self.total_tokens or self.all_input_tokens + self.output_tokens


def counted(usage: Usage) -> Count:
    """Usage reported by a provider, with cached tokens separate; elsewhere they count as input."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    return Count(input_tokens=usage.input_tokens - cached, cache_read_tokens=cached, output_tokens=usage.output_tokens)


def usable_tokens(
    limits: Limits, formula: Formula = Formula.V2, *, reserved_tokens: int = 0, share_percent: int = SHARE_PERCENT
) -> int:
    """Tokens that a conversation may take; 0 where nothing is known, or nothing would be left.

    `reserved_tokens` is what `v2`, `v3` and `reserve` keep free; 0 means what the formula says: the lesser of 20,000
    and the longest answer, 20,000, 16,384. Under `v3` and `reserve` a context that is not larger than that has only the
    longest answer kept free. `share_percent` is of what the model takes as input.
    """
    longest = limits.max_output_tokens
    declared = limits.input_tokens
    if not limits.context_tokens:
        return 0
    match formula:
        case Formula.V1:
            usable = limits.context_tokens - longest
        case Formula.V2:
            reserved = reserved_tokens or min(RESERVED_TOKENS_MAX, longest)
            usable = declared - reserved if declared else limits.context_tokens - longest - reserved
        case Formula.V3:
            buffer = reserved_tokens or BUFFER_TOKENS
            usable = _beside(limits, max(longest, buffer) if buffer < limits.context_tokens else longest)
        case Formula.SHARE:
            usable = (declared or limits.context_tokens) * share_percent // 100
        case Formula.RESERVE:
            reserved = reserved_tokens or FIXED_RESERVE_TOKENS
            usable = _beside(limits, reserved if reserved < limits.context_tokens else longest)
        case _:
            assert_never(formula)
    return max(0, usable)


def _beside(limits: Limits, free_tokens: int) -> int:
    """The context without the reserve; at most the model's own input limit."""
    usable = limits.context_tokens - free_tokens
    return min(usable, limits.input_tokens) if limits.input_tokens else usable


def overflows_v1(count: Count, limits: Limits, *, is_on: bool = True) -> bool:
    """Whether input, cache reads and output together exceed the space left beside the answer."""
    usable = usable_tokens(limits, Formula.V1)
    total = count.input_tokens + count.cache_read_tokens + count.output_tokens
    return is_on and usable > 0 and total > usable


def overflows_v2(count: Count, limits: Limits, *, is_on: bool = True, reserved_tokens: int = 0) -> bool:
    """Whether all tokens reach the space left beside the answer and the reserve."""
    usable = usable_tokens(limits, Formula.V2, reserved_tokens=reserved_tokens)
    return is_on and usable > 0 and count.all_tokens >= usable


def overflows(
    count: Count,
    limits: Limits,
    formula: Formula,
    *,
    reserved_tokens: int = 0,
    share_percent: int = SHARE_PERCENT,
) -> bool:
    """Whether a call of this size leaves no room for the next, by the formula that was chosen.

    `v3` gets estimates only: a count by the provider never overflows.
    """
    usable = usable_tokens(limits, formula, reserved_tokens=reserved_tokens, share_percent=share_percent)
    match formula:
        case Formula.V1:
            return overflows_v1(count, limits)
        case Formula.V2:
            return overflows_v2(count, limits, reserved_tokens=reserved_tokens)
        case Formula.V3:
            return count.is_estimate and 0 < usable < count.all_input_tokens
        case Formula.SHARE:
            return 0 < usable < count.all_input_tokens
        case Formula.RESERVE:
            return 0 < usable < count.all_tokens
        case _:
            assert_never(formula)


def estimate_request(request: ModelRequest, counter: TokenCounter = length_over_four) -> int:
    """Estimate the tokens of a request: system prompt, messages and tools. Images are not counted."""
    count = partial(_count, counter=counter)
    forms = request.forms if counter is length_over_four else NO_FORMS
    messages = sum(TOKENS_PER_MESSAGE + forms.made(message, "tokens", count) for message in request.messages)
    return counter(request.system) + messages + estimate_tools(request, counter)


def was_cut(request: ModelRequest, usage: Usage) -> bool:
    """Whether a provider's count of what it read shows that its server cut the request, to its window.

    Counts err in other ways: they leave out tools, the arguments of calls, and what was read from a cache; and text of
    many spaces has fewer tokens than its length says. So the count must be too low by the length of what all count, and
    also by its words, of which none is less than a token.
    """
    read = usage.input_tokens
    if read < LEAST_WINDOW or usage.cached_tokens:
        return False
    texts = [request.system, *(text for message in request.messages for text in _texts(message, with_calls=False))]
    if sum(map(length_over_four, texts)) <= read * CUT_RATIO:
        return False
    return sum(map(_least_tokens, texts)) > read * CUT_WORDS_RATIO


def _least_tokens(text: str) -> int:
    """So many tokens a text has at least: one for each word, and for eight characters of a long one."""
    return sum(max(1, len(word) // 8) for word in text.split())


def estimate_tools(request: ModelRequest, counter: TokenCounter = length_over_four) -> int:
    """Estimate the tokens of a request's tools."""
    return sum(_count_tool(tool, counter) for tool in request.tools)


def _count(message: ModelMessage, counter: TokenCounter) -> int:
    return sum(counter(text) for text in _texts(message))


def _count_tool(tool: ToolSpec, counter: TokenCounter) -> int:
    return counter(tool.name) + counter(tool.description) + counter(dump(tool.input_schema))


def _texts(message: ModelMessage, *, with_calls: bool = True) -> Iterable[str]:
    if isinstance(message, ToolMessage):
        yield _as_text(message.output)
        return
    for content in message.content:
        match content:
            case TextContent(text=text) | ReasoningContent(text=text):
                yield text
            case ToolCallContent():
                if with_calls:
                    yield _as_text(content.input)
            case FileContent():
                pass
            case _:
                assert_never(content)


def _as_text(value: JSONValue) -> str:
    return value if isinstance(value, str) else dump(value)
