"""Cut long texts where a reader should see that they were cut: for prompts, logs and summaries of one's own.

`cut_text` is how all of what a model is sent is cut: outputs, errors, messages, and texts to summarise. Values are cut
in their structure (`shortening.py`), rows as the wire protocol says (`oversized.py`).
"""

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

MARK: Final = "\n\n... [truncated] ...\n\n"
MAX_CHARS: Final = 30_000
MAX_LINES: Final = 200
MAX_OUTPUT_LINES: Final = 500

Strategy: TypeAlias = Literal["head", "middle", "tail"]
"""Which piece is cut away."""


NOTICE: Final = "\n... [{count} characters truncated] ...\n"
"""Between the beginning and the end of a text that was cut."""

FORMER: Final = re.compile(r"\n\.\.\. \[(?:\d+ more lines?, )?(\d+) characters truncated\](?: \.\.\.\n)?")
"""A notice of an earlier cut: its characters are its first group."""

END_SHARE: Final = 3
"""A third of what is kept is the end, where a run says how it went."""

_LEAST_ENDS: Final = 40
_DOTS: Final = "..."


def cut_text(text: str, max_chars: int) -> str:
    """Keep the beginning and the end of a text, with one notice between them; the text itself where it fits.

    The notice is within `max_chars`, so what was cut fits, and is never cut twice. Of a text that was cut to more, the
    former notice goes, and what it counted is counted on. Lines stay whole where that costs little. A limit without
    room for the notice leaves the beginning and three dots.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(NOTICE.format(count=len(text) * 1000))
    if room < _LEAST_ENDS:
        is_cut = text.endswith(_DOTS) and len(text) <= max_chars + len(_DOTS)
        return text if is_cut else text[: max(max_chars, 0)] + _DOTS
    end_chars = room // END_SHARE
    head, tail = text[: room - end_chars], text[len(text) - end_chars :]
    whole, _, piece = head.rpartition("\n")
    head = whole if whole and len(piece) < len(head) // 4 else head
    piece, _, whole = tail.partition("\n")
    tail = whole if whole and len(piece) < len(tail) // 4 else tail
    dropped = text[len(head) : len(text) - len(tail)]
    count = dropped_chars(dropped)
    return f"{head}{NOTICE.format(count=count)}{tail}"


def dropped_chars(dropped: str) -> int:
    """Characters that are missing without this piece: its own, and those that notices in it count."""
    return len(dropped) + sum(int(former[1]) - len(former[0]) for former in FORMER.finditer(dropped))


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
