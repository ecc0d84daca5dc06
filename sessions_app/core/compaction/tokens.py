"""Token counters: estimates of the tokens in a text.

A counter is one function: it takes a text and gives a number. The default is a rule of thumb that needs no data and
is never far below the truth for English. A tokenizer is used by its name where it is installed together with its
data; nothing is ever downloaded. Where a model reports what it was sent, that figure is better than any of these.
"""

import hashlib
import importlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from sessions_app.core.messages.parts import is_tool
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.shortening import text_length
from sessions_app.core.messages.steered import STEER
from sessions_app.errors import TokenCounterUnknown
from thinkproject.kernel.jsonvalue import JSONValue, dump

TokenCounter: TypeAlias = Callable[[str], int]

TOKENS_PER_MESSAGE: Final = 4  # what a provider adds around each message
CHARS_PER_TOKEN: Final = 4
TOKENS_PER_WORD: Final = 1.3


def estimate_text(text: str) -> int:
    """Estimate by characters and by words, and take the larger. The default counter."""
    return math.ceil(max(text_length(text) / CHARS_PER_TOKEN, len(text.split()) * TOKENS_PER_WORD))


def length_over_four(text: str) -> int:
    """Estimate by length alone: a quarter of the UTF-16 code units, halves rounded up."""
    return (text_length(text) + 2) // CHARS_PER_TOKEN


def count_tokens(text: str, counter: TokenCounter = estimate_text) -> int:
    """Count a text with a developer's counter. Negative and non-finite results count as 0."""
    counted: float = counter(text)
    return max(0, math.ceil(counted)) if math.isfinite(counted) else 0


def estimate_messages(
    messages: Iterable[Message], counter: TokenCounter = estimate_text, *, system_prompt: str = ""
) -> int:
    """Count UI messages: their texts, reasoning, tool inputs and outputs, and four for each message.

    `system_prompt` is what is sent in front of them.
    """
    in_front = count_tokens(system_prompt, counter) if system_prompt else 0
    return in_front + sum(estimate_message(message, counter) for message in messages)


def estimate_message(message: Message, counter: TokenCounter = estimate_text) -> int:
    """Count one UI message."""
    parts: Sequence[JSONValue] = message.get("parts") or []
    texts = (text for part in parts if isinstance(part, dict) for text in counted_texts(part))
    return TOKENS_PER_MESSAGE + sum(count_tokens(text, counter) for text in texts)


def counted_texts(part: Mapping[str, object]) -> Sequence[str]:
    """The texts of a part that count: of a text, of reasoning, of a tool call's input and of its result."""
    if part.get("type") in {"text", "reasoning"}:
        return [_as_text(part.get("text"))]
    if part.get("type") == STEER:
        return [_as_text(part.get("data"))]
    if is_tool(part):
        return [_as_text(part[key]) for key in ("input", "output", "errorText") if part.get(key) is not None]
    return []


def _as_text(value: JSONValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value)


def counter_named(name: str) -> TokenCounter:
    """Find a counter: `estimate`, `length_over_four`, `tiktoken`, `tiktoken:<encoding>` or `package.module:function`.

    **Errors:** `TokenCounterUnknown`, also for a tokenizer that is not installed with its data.
    """
    if name in _COUNTERS:
        return _COUNTERS[name]
    family, _, rest = name.partition(":")
    if family == "tiktoken":
        return _tiktoken(rest or "o200k_base")
    return _imported(family, rest)


_COUNTERS: Final[dict[str, TokenCounter]] = {"estimate": estimate_text, "length_over_four": length_over_four}


def _imported(module: str, attribute: str) -> TokenCounter:
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise TokenCounterUnknown(
            f"There is no token counter {f'{module}:{attribute}'!r}. Expected 'estimate', 'length_over_four', "
            "'tiktoken:<encoding>' or 'package.module:function'."
        ) from error
    if not callable(found):
        raise TokenCounterUnknown(f"{f'{module}:{attribute}'!r} is no function that counts tokens.")
    counter: TokenCounter = found
    return counter


# Where the tokenizer looks for its data: a file named by the SHA-1 of the data's public address. Its content is checked
# here as well, because the library fetches anew what is missing or broken.
_ENCODINGS: Final[dict[str, tuple[str, str]]] = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
_DATA_VARIABLE: Final = "TIKTOKEN_CACHE_DIR"


@cache
def _tiktoken(encoding: str) -> TokenCounter:
    if encoding not in _ENCODINGS:
        raise TokenCounterUnknown(f"There is no encoding {encoding!r}. Expected {' or '.join(sorted(_ENCODINGS))}.")
    try:
        library: Any = importlib.import_module("tiktoken")
    except ImportError as error:
        raise TokenCounterUnknown("The package 'tiktoken' is not installed.") from error
    _check_data(encoding)
    encoder: Any = library.get_encoding(encoding)

    def count(text: str) -> int:
        # A text may hold what looks like a special token; it is text all the same.
        return len(encoder.encode(text.encode("utf-8", "replace").decode(), disallowed_special=()))

    return count


def _check_data(encoding: str) -> None:
    filename, wanted = _ENCODINGS[encoding]
    path = Path(os.environ.get(_DATA_VARIABLE, "")) / filename
    if not os.environ.get(_DATA_VARIABLE) or not path.is_file():
        raise TokenCounterUnknown(
            f"The data of {encoding!r} is not here, and nothing is downloaded: put the file {filename!r} into a folder "
            f"and name that folder in {_DATA_VARIABLE}."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
        raise TokenCounterUnknown(f"The file {filename!r} in {_DATA_VARIABLE} is not the data of {encoding!r}.")
