"""Separates reasoning that a model writes in tags from the text of its answer, piece by piece.

Tags count at the beginning of the answer, where templates and models put them. Where the template had already opened
the reasoning, only its end mark comes: then all text before was reasoning. Tags in code and later in the text are the
answer's own words.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

_PAIRS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|channel>thought": "<channel|>",  # Gemma 4
}
_LONE: Final = ("</think>", "</thinking>", "</seed:think>")
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


class TagKind(Enum):
    """The kinds of what `ThoughtTags` gives. `WAS_THOUGHT`: the text given before was reasoning, all of it."""

    TEXT = auto()
    THOUGHT = auto()
    WAS_THOUGHT = auto()


class ThoughtTags:
    """The state of one answer. `said`: its text so far, in pieces.

    While `passes` is true, a piece without `<` is text: it may be added to `said` without being fed.
    """

    __slots__ = ("_closing", "_held", "_is_over", "_is_start", "_thinks", "_was_thought", "passes", "said")

    def __init__(self) -> None:
        self.said: list[str] = []
        self.passes = False
        self._is_start = True  # nothing but white space and reasoning has come
        self._is_over = False  # tags are the answer's own words from now on
        self._closing = ""  # of the tag that is open
        self._held = ""
        self._thinks = False  # something of the open reasoning was given
        self._was_thought = False

    def takes(self, piece: str) -> bool:
        """Whether a piece that is known to be reasoning is in tags."""
        return bool(self._closing) or (self._is_start and (self._held + piece).lstrip().startswith("<"))

    def feed(self, piece: str) -> Iterator[tuple[TagKind, str]]:
        """Take a piece of the answer's text, and give what it adds."""
        piece, self._held = self._held + piece, ""
        if self._is_start:
            piece = self._begin(piece)
        if self._closing:
            yield from self._think(piece)
        elif not self._is_start:
            yield from self._text(piece) if self._is_over else self._say(piece)
        self.passes = not (self._is_start or self._closing or self._held)

    def end(self) -> Iterator[tuple[TagKind, str]]:
        """Give the rest that was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if self._closing:
            yield from self._thought(held.rstrip())
        elif held.strip() or not self._is_start:
            yield from self._text(held)

    def stop(self) -> Iterator[tuple[TagKind, str]]:
        """Reasoning came in a field of its own, or a call: from now on tags are the answer's own words."""
        yield from self.end()
        self._closing, self._is_start, self._is_over, self.passes = "", False, True, True

    def _begin(self, piece: str) -> str:
        """Look for an opening tag at the beginning; hold the piece back while there may be one."""
        text = piece.lstrip()
        start = text[:20].lower()
        for opening, closing in _PAIRS.items():
            if start.startswith(opening):
                self._is_start, self._closing, self._thinks = False, closing, False
                return text[len(opening) :]
        if any(opening.startswith(start) for opening in _PAIRS):
            self._held = piece
            return ""
        self._is_start = False
        return text if self._was_thought else piece

    def _think(self, piece: str) -> Iterator[tuple[TagKind, str]]:
        at = piece.lower().find(self._closing)
        if at < 0:
            text = piece.rstrip()
            kept = len(text) - _open_end(text, (self._closing,))
            yield from self._thought(piece[:kept])
            self._held = piece[kept:]
            return
        yield from self._thought(piece[:at].rstrip())
        yield from self._after_thought(piece[at + len(self._closing) :])

    def _thought(self, text: str) -> Iterator[tuple[TagKind, str]]:
        text = text if self._thinks else text.lstrip()
        if text:
            self._thinks = True
            yield TagKind.THOUGHT, text

    def _after_thought(self, rest: str) -> Iterator[tuple[TagKind, str]]:
        """The text behind reasoning; another pair of tags may come first."""
        self.said.clear()
        self._closing, self._is_start, self._is_over, self._was_thought = "", True, True, True
        rest = self._begin(rest)
        if self._closing:
            yield from self._think(rest)
        elif not self._is_start:
            yield from self._text(rest)

    def _text(self, text: str) -> Iterator[tuple[TagKind, str]]:
        if text:
            self.said.append(text)
            yield TagKind.TEXT, text

    def _say(self, piece: str) -> Iterator[tuple[TagKind, str]]:
        """Text, in which the end mark of reasoning may come that the template had begun."""
        for closing in _LONE:
            before, found, after = piece.partition(closing)
            if found and re.search(f"(?<!`){closing.replace('/', '')}", "".join(self.said) + before):
                continue  # the end of a pair that is the answer's own words
            line = before.rpartition("\n")[2] if "\n" in before else ("".join(self.said) + before).rpartition("\n")[2]
            if not found or self._is_in_code(before, line):
                continue
            if line.strip() and not after.strip(" \t"):
                yield from self._text(before)
                self._held = found + after  # the end mark stands at the end of a line only if that ends here
                return
            if not line.strip() or after.lstrip(" \t").startswith("\n"):
                yield from self._turn(before.rstrip(), after)
                return
        held = _open_end(piece, _LONE)
        yield from self._text(piece[: len(piece) - held])
        self._held = piece[len(piece) - held :]

    def _is_in_code(self, before: str, line: str) -> bool:
        return line.count("`") % 2 == 1 or len(_FENCE.findall("".join(self.said) + before)) % 2 == 1

    def _turn(self, thought: str, rest: str) -> Iterator[tuple[TagKind, str]]:
        """All text so far was reasoning."""
        if self.said:
            yield from self._text(thought)
            yield TagKind.WAS_THOUGHT, ""
        else:
            yield from self._thought(thought)
        yield from self._after_thought(rest)


def without_end_mark(text: str) -> str:
    """The text behind reasoning that came in a field of its own, without the mark that some parsers leave there."""
    begun = text.lstrip()
    mark = next((mark for mark in _LONE if begun.startswith(mark)), "")
    return begun.removeprefix(mark).lstrip() if mark else text


def _open_end(text: str, tags: tuple[str, ...]) -> int:
    """Length of the end of a text that may be the beginning of one of the tags."""
    at = max(text.rfind(mark) for mark in "<[◁")
    if at < 0:
        return 0
    end = text[at:].lower()
    return len(end) if any(tag.startswith(end) for tag in tags) else 0
