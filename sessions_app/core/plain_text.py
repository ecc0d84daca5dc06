"""Texts from outside as they may be stored or read, without what stands before an answer and without what tricks."""

import re
import unicodedata
from typing import Final

_OPENING: Final = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CLOSING: Final = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_ANY_OPENING: Final = re.compile(r"<think(?:ing)?>", re.IGNORECASE)


def storable(text: str) -> str:
    """A text as every database stores it: PostgreSQL takes neither NUL nor half a character."""
    return text.replace("\0", "").encode(errors="replace").decode()


def without_thoughts(text: str) -> str:
    """A model's answer without what some models think aloud in front of it.

    The opening tag may be missing. Thoughts that do not end are all there is of the answer. Tags further down are the
    answer's own words.
    """
    closing = _CLOSING.search(text)
    if _OPENING.match(text):
        return text[closing.end() :].strip() if closing else ""
    if closing and not _ANY_OPENING.search(text, 0, closing.start()):
        return text[closing.end() :].strip()
    return text.strip()


def visible(text: str) -> str:
    """A text on one line, without characters that are not seen, or that turn the direction of what follows."""
    shown = "".join(" " if char.isspace() else char for char in text if char.isspace() or _is_shown(char))
    return " ".join(shown.split())


def _is_shown(char: str) -> bool:
    """Neither a control character nor one that turns the direction of what follows. Joiners of emoji stay."""
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"} or char == "\u200d"
