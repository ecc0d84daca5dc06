"""Snippets and highlights of matches. Pure: the order of matches is up to `search/ordering.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sessions_app.core.messages.plain_text import without_markup
from sessions_app.core.search.search_query import Phrase
from sessions_app.core.search.words import Word, words_of

SNIPPET_CHARS: Final = 240
_LEAD_CHARS: Final = 60
_AROUND_CHARS: Final = 400  # beside a stretch, which is shorter without its marks


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of a text and what of it matches, as ranges of the stretch."""

    text: str
    highlights: tuple[tuple[int, int], ...]


def snippet(text: str, phrases: Sequence[Phrase]) -> Snippet:
    """Cut the stretch around the first match, without marks of Markdown; without a match the beginning.

    What matches inside a mark alone, as in the address of a link, is shown as it was written.
    """
    start, cut = _cut(text, phrases)
    around = text[_line_start(text, max(0, start - _AROUND_CHARS)) : start + len(cut.text) + _AROUND_CHARS]
    _, plain = _cut(without_markup(around), phrases)
    return plain if plain.highlights or not cut.highlights else cut


def _cut(text: str, phrases: Sequence[Phrase]) -> tuple[int, Snippet]:
    """The stretch of a text, and where in the text it begins."""
    stretch: list[Word] = []
    ranges: list[tuple[int, int]] = []
    limit = len(text)
    longest = max(map(len, phrases), default=1)
    for word in words_of(text):
        if word.start >= limit:
            break
        stretch = [*stretch[-longest + 1 :], word] if longest > 1 else [word]
        for phrase in phrases:
            if tuple(each.stem for each in stretch[-len(phrase) :]) == phrase:
                ranges.append((stretch[-len(phrase)].start, word.end))
                limit = min(limit, _start(text, ranges[0][0]) + SNIPPET_CHARS)
    start = _start(text, ranges[0][0]) if ranges else 0
    end = _end(text, start)
    inside = _merged([(low - start, high - start) for low, high in ranges if high <= end])
    return start, Snippet(text[start:end], tuple(inside))


def _line_start(text: str, at: int) -> int:
    """The beginning of the line, where it is near: marks of Markdown do not go beyond a line."""
    return max(at - _AROUND_CHARS, text.rfind("\n", 0, at) + 1)


def _start(text: str, first: int) -> int:
    """Start of a snippet with some context before the match, at a word boundary."""
    if first <= _LEAD_CHARS:
        return 0
    space = text.find(" ", first - _LEAD_CHARS, first)
    return first - _LEAD_CHARS if space < 0 else space + 1


def _end(text: str, start: int) -> int:
    end = start + SNIPPET_CHARS
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", start + SNIPPET_CHARS - _LEAD_CHARS, end)
    return end if space < 0 else space


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
