"""The seam of a text that was cut: where it goes on, and how what a model says next is joined to what was shown. Pure.

A model that is asked to go on gets the text up to its last whole word (`Seam.base`) and so writes the word anew that
was cut (`Seam.tail`). Where it writes the same, what was shown stays and grows; where it writes another, the tail is
taken back. Many models begin with words that they have said: these are dropped, but only where they cannot be meant.
Of a structured answer nothing is a base: a model whose answer has to be JSON of a schema begins it anew.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

MAX_WORD: Final = 200
"""A longer run without a space is no word; it goes on where it was cut."""

SURE_WIDTH: Final = 10
"""Words of so many columns that a model repeats at the seam, and said once before, are no new ones."""

_WIDE: Final = re.compile(r"[\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
"""Characters of writing without spaces: each is a word of its own."""

_WORD: Final = re.compile(r"[^\s\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+\Z")
_MARK: Final = re.compile(r"\s*(?:[-*+>#|]+|\d+[.)]) ")
"""The beginning of a line in a list, a quotation, a heading or a table."""

_JOINERS: Final = frozenset("\u200d\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A text that was cut. `base`: its whole words, as the model gets them; `tail`: the rest of what was shown."""

    base: str
    tail: str

    @property
    def shown(self) -> str:
        """The text as it was cut."""
        return self.base + self.tail

    @classmethod
    def of(cls, text: str, *, begins_anew: bool = False) -> "Seam":
        """The seam behind the last whole word. With `begins_anew` the model gets nothing of the text.

        The first word goes on where it was cut, if there is enough of it: behind it there is no other place.
        """
        place = 0 if begins_anew else _word_start(text)
        base = text[:place]
        if not base.strip() or (place == len(text) and _letters(base) < 2):  # too little to go on from
            is_first_word = not begins_anew and _letters(text) > 2 and any(map(str.isalpha, text))
            base = text if is_first_word else ""
        return cls(base=base, tail=text[len(base) :])

    @property
    def exact(self) -> "Seam":
        """The seam for a provider that goes on within the text; it writes white space at its end itself."""
        text = self.shown
        base = text.rstrip()
        return Seam(base=base, tail=text[len(base) :])


def _word_start(text: str) -> int:
    """The beginning of the word that a text ends in; its length where it ends in none."""
    match = _WORD.search(text, max(0, len(text) - MAX_WORD))
    place = match.start() if match else len(text)
    if 0 < place == len(text) - MAX_WORD and not text[place - 1].isspace():
        return len(text)
    while 0 < place < len(text) and _is_joined(text[place]):
        place -= 1
    line = text.rfind("\n", 0, place) + 1
    return place if text[line:place].strip() else line  # an indentation belongs to what follows it


def _is_joined(character: str) -> bool:
    """Whether a character belongs to the one before it."""
    return character in _JOINERS or unicodedata.category(character).startswith("M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The continuation of a text: `replaced` is taken off its end, `added` follows."""

    replaced: str = ""
    added: str = ""


class Joiner:
    """Joins what a model says to a text that was cut. It waits as long as the model may be repeating itself."""

    def __init__(self, seam: Seam) -> None:
        self._seam = seam
        self._said = ""
        self._is_exact = False
        self._echoes = False

    @property
    def has_heard(self) -> bool:
        """Whether the model has said something that is not joined yet."""
        return bool(self._said)

    def goes_on_exactly(self, *, echoes: bool) -> None:
        """Note that the provider continues the text itself. `echoes`: its answer begins with the text."""
        self._seam = self._seam.exact
        self._is_exact, self._echoes = True, echoes

    def hear(self, text: str) -> Joined | None:
        """Take more of what the model says; give the continuation once it is clear, and then take no more."""
        self._said += text
        shown = self._seam.shown
        if self._said in shown or self._said.lstrip() in shown:
            return None
        return self.end()

    def end(self) -> Joined:
        """The continuation, as far as it has come."""
        said, self._said = self._said, ""
        if not said.strip():
            return Joined(added=said)
        return self._joined(said[self._repeated(said) :])

    def _joined(self, rest: str) -> Joined:
        base, tail = self._seam.base, self._seam.tail
        bare = rest.lstrip()
        if rest.startswith(tail):
            if self._is_exact or tail:
                return Joined(added=rest[len(tail) :])
            if base[-1:].islower() and base.isprintable() and " " not in base and rest[:1].isupper():
                return Joined(replaced=base, added=rest)  # another first word
            return Joined(added=rest.lstrip(" ") if base[-1:] == " " else rest)
        if (not base or base[-1].isspace()) and bare.startswith(tail):
            return Joined(added=bare[len(tail) :])
        if base and (bare == rest) is self._is_exact:
            return Joined(added=rest)  # behind white space that was shown, or behind a word that was whole
        return Joined(replaced=tail, added=rest)

    def _repeated(self, said: str) -> int:
        """The length of the text at the beginning of the answer that repeats the end of the text that was cut."""
        base = self._seam.base
        for length in range(min(len(base), len(said)), 0, -1):
            if base[-length] == said[0] and base.endswith(said[:length]) and self._is_no_news(said, length):
                return length
        return 0

    def _is_no_news(self, said: str, length: int) -> bool:
        """Whether words that are there cannot be meant a second time. Two letters, or what comes often, may be."""
        base, tail = self._seam.base, self._seam.tail
        words = said[:length]
        is_all = length == len(base)
        if is_all and self._echoes:
            return True
        meets = bool(tail) and said[length:].startswith(tail)  # and goes on with what was shown behind them
        text, repeated = (self._seam.shown, words + tail) if meets else (base, words)
        if text.find(repeated) < len(text) - len(repeated) and not _MARK.fullmatch(words):
            return False
        if is_all or base[-length - 1] == "\n":
            is_no_news = meets or _is_telling(words, is_code=base[:-length].count("```") % 2 == 1)
            if is_no_news and (is_all or not self._is_exact):
                return _width(repeated) > 2 or _MARK.match(words) is not None
        if is_all:
            return False
        counts = [word for word in words.split() if _letters(word)]
        if len(set(counts)) < len(counts):
            return False
        if _width(repeated) >= SURE_WIDTH:
            return True
        if self._is_exact or not base[-length - 1].isspace():
            return False
        if len(words.split()) > 2 or (meets and len(counts) > 1):
            return True
        return meets and words[-1].isspace() and _letters(words) > 3 and not said.startswith(tail)


def _is_telling(line: str, *, is_code: bool) -> bool:
    """Whether lines, the last one perhaps not whole, can hardly be meant to stand there twice.

    Ends of blocks may be, and rows of equal words, and one or two letters.
    """
    words, is_whole = line.split(), line.endswith("\n")
    if line.lstrip().startswith("```") or (_MARK.match(line) and not is_whole):
        return True
    if _letters(line) < 2 or (len(words) > 1 and len(set(words)) == 1):
        return False
    if any(character.isdigit() for character in line) or len(words) > 2:
        return True
    if len(set("".join(words))) == 1:
        return False
    return _letters(line) > (5 if is_code else 3) if is_whole else _letters(line) > 2


def _letters(text: str) -> int:
    return sum(character.isalnum() for character in text) + len(_WIDE.findall(text))


def _width(text: str) -> int:
    """Columns, roughly: a character of writing without spaces says as much as two letters."""
    return len(text) + len(_WIDE.findall(text))
