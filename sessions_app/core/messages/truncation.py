"""Cut long texts where a reader should see that they were cut: for prompts, logs and summaries of one's own.

What a row holds and what a model is sent is cut elsewhere, in its structure (`oversized.py`, `shortening.py`).
"""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

MARK: Final = "\n\n... [truncated] ...\n\n"
MAX_CHARS: Final = 30_000
MAX_LINES: Final = 200
MAX_OUTPUT_LINES: Final = 500

Strategy: TypeAlias = Literal["head", "middle", "tail"]
"""Which piece is cut away."""


def truncate_head(text: str, max_chars: int = MAX_CHARS) -> str:
    """Keep the end of a text. The mark is not counted."""
    return text if len(text) <= max_chars else MARK + text[len(text) - max_chars :]


def truncate_tail(text: str, max_chars: int = MAX_CHARS) -> str:
    """Keep the beginning of a text. The mark is not counted."""
    return text if len(text) <= max_chars else text[:max_chars] + MARK


def truncate_middle(text: str, max_chars: int = MAX_CHARS) -> str:
    """Keep the beginning and the end of a text, in halves. The mark is not counted."""
    if len(text) <= max_chars:
        return text
    end = max_chars // 2
    return text[: max_chars - end] + MARK + text[len(text) - end :]


def truncate_lines(text: str, max_lines: int = MAX_LINES) -> str:
    """Keep the first lines of a text and append the number of dropped ones."""
    lines = text.split("\n")
    if len(lines) <= max_lines:
        return text
    return "\n".join([*lines[:max_lines], f"... [{len(lines) - max_lines} more lines truncated]"])


def truncate_tool_output(
    text: str,
    *,
    max_chars: int = MAX_CHARS,
    max_lines: int = MAX_OUTPUT_LINES,
    strategy: Strategy = "tail",
) -> str:
    """Truncate a tool's output: first by lines, then by characters, by default at its end."""
    return _CUTS[strategy](truncate_lines(text, max_lines), max_chars)


_CUTS: Final[dict[Strategy, Callable[[str, int], str]]] = {
    "head": truncate_head,
    "middle": truncate_middle,
    "tail": truncate_tail,
}
