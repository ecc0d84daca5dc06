"""The stem of an English word: what "search", "searched" and "searching" share.

It is M. F. Porter's algorithm of 1980, which takes suffixes off in five steps. Words are stemmed here and not by the
databases, so that each finds exactly what the other finds. Anything but lower-case ASCII letters is left as it is.
"""

from functools import lru_cache
from typing import Final

_VOWELS: Final = frozenset("aeiou")

# Suffix and what stands for it, where at least one vowel-consonant pair comes before it.
_STEP_2: Final = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("entli", "ent"),
    ("ousli", "ous"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("alli", "al"),
    ("ator", "ate"),
    ("logi", "log"),
    ("bli", "ble"),
    ("eli", "e"),
)
_STEP_3: Final = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
# Taken off where two pairs come before it; "ion" only after s or t.
_STEP_4: Final = (
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ion",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "al",
    "er",
    "ic",
    "ou",
)


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Give the stem of a lower-case word."""
    if len(word) <= 2 or not (word.isascii() and word.isalpha()):
        return word
    word = _past(_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    return _end(_without_suffix(word))


def _shape(text: str) -> str:
    """Tell vowels (v) from consonants (c); a y after a consonant is a vowel."""
    shape = ""
    for char in text:
        is_vowel = char in _VOWELS or (char == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _pairs(text: str) -> int:
    return _shape(text).count("vc")


def _ends_double(text: str) -> bool:
    return len(text) > 1 and text[-1] == text[-2] and _shape(text).endswith("c")


def _ends_short(text: str) -> bool:
    """Whether consonant, vowel, consonant end the text, the last not w, x or y: as in "hop"."""
    return _shape(text).endswith("cvc") and text[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _pairs(word[:-3]) else word
    cut = next((word.removesuffix(end) for end in ("ed", "ing") if word.endswith(end)), "")
    if "v" not in _shape(cut):
        return word
    if cut.endswith(("at", "bl", "iz")):
        return cut + "e"
    if _ends_double(cut) and cut[-1] not in "lsz":
        return cut[:-1]
    return cut + "e" if _pairs(cut) == 1 and _ends_short(cut) else cut


def _replaced(word: str, table: tuple[tuple[str, str], ...]) -> str:
    for suffix, other in table:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            return rest + other if _pairs(rest) else word
    return word


def _without_suffix(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            if suffix == "ion" and not rest.endswith(("s", "t")):
                return word
            return rest if _pairs(rest) > 1 else word
    return word


def _end(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        pairs = _pairs(rest)
        if pairs > 1 or (pairs == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _pairs(word[:-1]) > 1 else word
