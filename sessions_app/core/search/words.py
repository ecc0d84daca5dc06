"""Words of a text as the search knows them: without case and accents, stemmed; each with its place in the text.

Both databases index what comes out of here and split it at spaces, so they find the same. Chinese, Japanese and Korean
are written without spaces between words or with endings glued on: their characters count one by one, and a word of
several is looked for as a phrase.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import Final

from sessions_app.core.messages.shapes import Part
from sessions_app.core.messages.steered import with_steered
from sessions_app.core.search.stemming import stem

MAX_WORDS: Final = 16_000
MAX_INDEXED_CHARS: Final = 200_000  # a PostgreSQL tsvector holds a megabyte
MAX_WORD_CHARS: Final = 64

_ASCII_WORD: Final = re.compile(r"[A-Za-z0-9]+")
# Han, kana, bopomofo, hangul.
_ONE_BY_ONE: Final = "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
_ONE_BY_ONE_MORE: Final = "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
# Accents and points that readers leave out; vowel signs of other scripts stay.
_ACCENTS: Final = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word and where it stands: `text[start:end]`."""

    stem: str
    start: int
    end: int


def words_of(text: str) -> Iterator[Word]:
    """Give the words of a text in order."""
    pattern = _ASCII_WORD if text.isascii() else _any_word()
    for found in pattern.finditer(text):
        folded = fold(found[0])
        if folded:
            yield Word(folded, found.start(), found.end())


def indexed_words(text: str) -> str:
    """Join the words of a text by spaces, as they are indexed: the first 16,000, at most 200,000 characters."""
    joined = " ".join(word.stem for word in islice(words_of(text), MAX_WORDS))
    return joined if len(joined) <= MAX_INDEXED_CHARS else joined[:MAX_INDEXED_CHARS].rpartition(" ")[0]


def text_of(parts: Iterable[Part]) -> str:
    """Join the texts of a message and of what it took in: no reasoning, no tools, no files."""
    said = (part for part in with_steered(parts) if part.get("type") == "text" and isinstance(part.get("text"), str))
    return "\n".join(part["text"] for part in said)


@lru_cache(maxsize=50_000)
def fold(word: str) -> str:
    """Give a word without case and accents, stemmed; only letters and digits are left."""
    folded = word.lower()
    if not folded.isascii():
        plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", word.casefold()))
        folded = "".join(_any_word().findall(unicodedata.normalize("NFC", plain.casefold())))
    return stem(folded[:MAX_WORD_CHARS])


@cache
def _any_word() -> re.Pattern[str]:
    # Written out, as `re` knows no Unicode categories: a mark belongs to the letter before it.
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M"))
    marks += "\U000e0100-\U000e01ef"
    single = f"[{_ONE_BY_ONE}{_ONE_BY_ONE_MORE}]"
    return re.compile(f"{single}[{marks}]*|(?:(?!{single})[^\\W_][{marks}]*)+")
