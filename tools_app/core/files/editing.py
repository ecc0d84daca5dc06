"""Replace one piece of a text, found exactly or, failing that, with other white space and typographic characters. Pure.

What an edit does not change stays as the file has it: where old and new text agree, the file's own characters are kept,
and new line ends are those that most lines of the file have.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

_SPACES: Final = r" \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_MARKS: Final = r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
_JAMO: Final = r"[\u1100-\u115f][\u1160-\u11a7][\u11a8-\u11ff]?"
_PLAIN: Final = {
    **dict.fromkeys("‘’‚‛′ʼ‹›＇", "'"),
    **dict.fromkeys("“”„‟″«»＂", '"'),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
    "…": "...",
}
_RUN: Final = re.compile(
    rf"[{_SPACES}]+|\r\n|[{re.escape(''.join(_PLAIN))}]|[^\s{_MARKS}][{_MARKS}]+|{_JAMO}|[\u2126\u212a\u212b]"
)
"""Each is compared in its plain form: one space, a line feed, a character of a keyboard, composed letters."""

_TOKEN: Final = re.compile(rf"[{_SPACES}]+|\r\n|\.\.\.|(?:{_JAMO}|[\w{_MARKS}])+|.", re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\n")
_MAX_COMPARED: Final = 250_000
"""Pairs of tokens of an old and a new text; longer ones are compared from both ends only."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after an edit. `is_fuzzy`: the piece was found only when it was compared in its plain form."""

    content: str
    is_fuzzy: bool = False


@dataclass(frozen=True, slots=True)
class NotEdited:
    """The reason why a piece was not replaced. `count`: of exact places, overlapping ones each, at most a hundred."""

    reason: Literal["missing", "ambiguous", "ambiguous_fuzzy"]
    count: int = 0


Outcome: TypeAlias = Edited | NotEdited


def replace_once(content: str, old: str, new: str) -> Outcome:
    """Replace the one place where `old` stands by `new`. `old` is not empty.

    Places that overlap count each. Where there is none, both texts are compared in a plain form: runs of spaces of all
    kinds count as one space, CRLF as LF, typographic quotes and dashes as those of a keyboard, decomposed letters as
    composed ones; the piece must then be found once. The rest of the text stays as it was.

    Tokens (words, spaces, other characters) that `old` and `new` have in common stay as the text has them. Line ends
    that are new become those of most lines, unless the edit changes nothing but line ends.
    """
    first = content.find(old)
    if first >= 0:
        count = _count(content, old, first)
        if count > 1:
            return NotEdited("ambiguous", count)
        return Edited(_spliced(content, (first, first + len(old)), old, new))
    plain, needle = _Plain(content), _Plain(old).text
    places = list(plain.places(needle))
    if not places:
        return NotEdited("missing")
    if len(places) > 1:
        return NotEdited("ambiguous_fuzzy")
    return Edited(_spliced(content, places[0], old, new), is_fuzzy=True)


def plain_form(text: str) -> str:
    """A text as it is compared where it is not found exactly: texts that look alike have the same."""
    return _Plain(text).text


def line_end_of(content: str) -> str:
    """The end that most lines of a text have, the first one where as many have another; empty where no line ends."""
    windows = content.count("\r\n")
    unix = content.count("\n") - windows
    if windows == unix:
        found = _LINE_END.search(content)
        return found[0] if found else ""
    return "\r\n" if windows > unix else "\n"


def with_line_ends(text: str, line_end: str) -> str:
    """A text whose lines end in one way; as it is where `line_end` is empty."""
    return _LINE_END.sub(line_end, text) if line_end else text


def _count(content: str, old: str, first: int) -> int:
    """Places, overlapping ones each; counting stops at a hundred."""
    count, at = 0, first
    while at >= 0 and count < 100:
        count += 1
        at = content.find(old, at + 1)
    return count


def _spliced(content: str, place: tuple[int, int], old: str, new: str) -> str:
    start, end = place
    if content[max(start - 1, 0) : start + 1] == "\r\n" and old[0] == "\n" and not new.startswith("\n"):
        start -= 1  # the line end goes whole
    return content[:start] + _merged(content[start:end], old, new, line_end_of(content)) + content[end:]


def _merged(own: str, old: str, new: str, line_end: str) -> str:
    """The new text, with the tokens of the file where it has those of the old text."""
    if old != new and with_line_ends(old, "\n") == with_line_ends(new, "\n"):
        return new
    if own == old and "\n" not in new:
        return new
    mine, said, wanted = _TOKEN.findall(own), _TOKEN.findall(old), _TOKEN.findall(new)
    if len(mine) != len(said):
        return with_line_ends(new, line_end)
    # A writer who sets other quotes than a file of plain ones means those of the file.
    keyboard = {each: own for each, own in zip(said, mine, strict=True) if each in _PLAIN and own.isascii()}
    pieces: list[str] = []
    for is_same, first, last, start, end in _compared(said, wanted):
        made = "".join(keyboard.get(each, each) for each in wanted[start:end])
        pieces.append("".join(mine[first:last]) if is_same else with_line_ends(made, line_end))
    return "".join(pieces)


def _compared(said: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Stretches of two lists of tokens: whether they are the same, first and end in the one, first and end in both."""
    lead = int(said[0] == "\n" and wanted[:1] == ["\n"])  # what begins at a line end leaves it where it is
    if len(said) * len(wanted) <= _MAX_COMPARED:
        yield True, 0, lead, 0, lead
        for kind, *at in SequenceMatcher(None, said[lead:], wanted[lead:], autojunk=False).get_opcodes():
            yield kind == "equal", at[0] + lead, at[1] + lead, at[2] + lead, at[3] + lead
        return
    most = min(len(said), len(wanted))
    head = next((at for at in range(most) if said[at] != wanted[at]), most)
    tail = next((at for at in range(most - head) if said[-1 - at] != wanted[-1 - at]), most - head)
    ends = len(said) - tail, len(wanted) - tail
    yield True, 0, head, 0, head
    yield False, head, ends[0], head, ends[1]
    yield True, ends[0], len(said), ends[1], len(wanted)


class _Plain:
    """A text in its plain form, which knows where each of its characters begins in the original."""

    def __init__(self, original: str) -> None:
        pieces: list[str] = []
        self._before, self._after = [0], [0]  # of each run: its place in the plain text
        self._last = [0]  # its end in the original
        at = length = 0
        for run in _RUN.finditer(original):
            made = _plain(run[0])
            if made == run[0]:
                continue
            pieces += [original[at : run.start()], made]
            self._before.append(length + run.start() - at)
            length = self._before[-1] + len(made)
            at = run.end()
            self._after.append(length)
            self._last.append(at)
        pieces.append(original[at:])
        self.text = "".join(pieces)

    def places(self, needle: str) -> Iterator[tuple[int, int]]:
        """The places of a plain text in the original, two at most; not within what is one character there."""
        found, at = 0, self.text.find(needle)
        while at >= 0 and found < 2:
            start, end = self._original(at), self._original(at + len(needle))
            if start is not None and end is not None:
                found += 1
                yield start, end
            at = self.text.find(needle, at + 1)

    def _original(self, at: int) -> int | None:
        """The place in the original of a place between two characters, or of the end; `None` within a run."""
        run = bisect_right(self._after, at) - 1
        if run + 1 < len(self._before) and self._before[run + 1] < at:
            return None
        return self._last[run] + at - self._after[run]


def _plain(run: str) -> str:
    if run == "\r\n":
        return "\n"
    if run in _PLAIN:
        return _PLAIN[run]
    return unicodedata.normalize("NFC", run) if run.strip() else " "
