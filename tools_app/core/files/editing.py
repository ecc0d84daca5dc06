"""Replace one piece of a text, found exactly or, failing that, with other white space. Pure."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

_RUN: Final = re.compile(r"[ \t]+|\r\n")
"""Each becomes one character when white space is normalised."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after an edit. `is_fuzzy`: the piece was found only after white space had been normalised."""

    content: str
    is_fuzzy: bool = False


@dataclass(frozen=True, slots=True)
class NotEdited:
    """The reason why a piece was not replaced. `count`: of exact places, overlapping ones each, at most a hundred."""

    reason: Literal["missing", "ambiguous", "ambiguous_fuzzy"]
    count: int = 0


Outcome: TypeAlias = Edited | NotEdited


def replace_once(content: str, old: str, new: str) -> Outcome:
    """Replace the one place where `old` stands by `new`, to the letter. `old` is not empty.

    Places that overlap count each. Where there is none, runs of spaces and tabs count as one space and CRLF as LF, in
    both texts; the piece must then be found once. The rest of the text stays as it was.
    """
    first = content.find(old)
    if first >= 0:
        count = _count(content, old, first)
        if count > 1:
            return NotEdited("ambiguous", count)
        return Edited(_spliced(content, first, first + len(old), new))
    normalised, needle = _Normalised(content), _Normalised(old).text
    at = normalised.text.find(needle)
    if at < 0:
        return NotEdited("missing")
    end = at + len(needle)
    if normalised.text.find(needle, end) >= 0:
        return NotEdited("ambiguous_fuzzy")
    return Edited(_spliced(content, normalised.original(at), normalised.original(end), new), is_fuzzy=True)


def _count(content: str, old: str, first: int) -> int:
    """Places, overlapping ones each; counting stops at a hundred."""
    count, at = 0, first
    while at >= 0 and count < 100:
        count += 1
        at = content.find(old, at + 1)
    return count


def _spliced(content: str, start: int, end: int, new: str) -> str:
    return content[:start] + new + content[end:]


class _Normalised:
    """A text with its white space normalised, which knows where each of its characters begins in the original."""

    def __init__(self, original: str) -> None:
        pieces: list[str] = []
        self._after = [0]  # of each run: where the text goes on, normalised
        self._original = [0]  # the same place in the original
        at = length = 0
        for run in _RUN.finditer(original):
            pieces += [original[at : run.start()], "\n" if run[0] == "\r\n" else " "]
            length += run.start() - at + 1
            at = run.end()
            self._after.append(length)
            self._original.append(at)
        pieces.append(original[at:])
        self.text = "".join(pieces)

    def original(self, at: int) -> int:
        """The place in the original of a place in the text, or of its end."""
        run = bisect_right(self._after, at) - 1
        return self._original[run] + at - self._after[run]
