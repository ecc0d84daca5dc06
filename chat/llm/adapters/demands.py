"""Demands of a server on the history that is sent to it, read off its refusals. Pure.

Nothing of it is a failure: the request is sent once more as the server wants it (`adapter.py`).
"""

import re
from dataclasses import replace
from typing import Final

from chat.llm.adapters.prefill import NO_PREFILL
from chat.llm.adapters.refusals import Lesson
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import Learned

_ADDED: Final = {
    "ids": re.compile(
        r"tool.?(?:call|use).{0,8}\bids?\b|tool_(?:call|use)_id|tool_calls?(?:\[\d+\]|\.\d+)\.id"
        r"|\bids?\b.{0,80}(?:length|too long|pattern|match|invalid|alphanumeric|format|character)"
        r"|(?:invalid|bad|illegal|malformed)\b.{0,40}\bids?\b",
        re.IGNORECASE | re.DOTALL,
    ),
    "signature": re.compile(r"thought.?signature", re.IGNORECASE),
    "answer": re.compile(
        r"role\W{1,3}user\W{1,3} after (?:role )?\W?tool|roles? must alternate|alternating (?:user|roles)",
        re.IGNORECASE,
    ),
    NO_PREFILL: re.compile(
        r"prefill|\bprefix\b|\bpartial\b|continue_final_message|add_generation_prompt"
        r"|(?:last|final) message\b.{0,60}\b(?:user|tool|assistant)|must end with a user|ends? with (?:an? )?assistant",
        re.IGNORECASE | re.DOTALL,
    ),
    "reasoning": re.compile(r"reasoning.?content|(?:missing|passed? back).{0,60}(?:reasoning|thinking)", re.IGNORECASE),
}
_UNKNOWN_FIELD: Final = re.compile(
    r"reasoning\w*\W.{0,60}(?:not supported|unsupported|unknown|unexpected|not permitted|unrecognized|extra)"
    r"|(?:not supported|unsupported|unknown|unexpected|not permitted|unrecognized|additional|extra)\b.{0,80}reasoning",
    re.IGNORECASE | re.DOTALL,
)


def demands_of(endpoint: Endpoint, known: Learned) -> frozenset[str]:
    """The demands of a server.

    `ids` of nine letters and digits, `signature`, `reasoning` with each call, `answer` of the model between results and
    the user's next message; and what it does not take: `no reasoning`, or `no prefill`.
    """
    is_strict = "mistral.ai" in endpoint.base_url or endpoint.provider == "mistral"
    return frozenset((*known.demands, "ids", "answer") if is_strict else known.demands)


def demanding(words: str) -> Lesson | None:
    """The lesson of a refusal about the history; it is one only where the next body is another one for it."""
    found = {name for name, pattern in _ADDED.items() if pattern.search(words)}
    if _UNKNOWN_FIELD.search(words):
        found = found - {"reasoning"} | {"no reasoning"}
    if not found:
        return None
    return lambda learned: replace(learned, demands=tuple(sorted({*learned.demands, *found})))
