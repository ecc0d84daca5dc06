"""The arguments of one call, put together from the pieces that servers send. Pure.

Nearly always they are the pieces joined. Where that is no JSON, the other readings are tried that servers were seen to
need: pieces that repeat all before them, the whole or its end once more, an empty object in front, a text in a text,
words or a fence around the one object, line ends in a text. What is cut or says two things stays as it is.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from thinkproject.kernel.jsonvalue import JSONValue, dump, load

_NOTHING: Final = frozenset({"", "null", "None", '""'})
_MAX_NESTING: Final = 3
_read_value: Final = json.JSONDecoder(strict=False).raw_decode


def arguments_of(pieces: Sequence[str]) -> str:
    """The text of the arguments: a JSON object where any reading gives one, else the pieces as they came."""
    joined = "".join(pieces)
    if joined.strip() in _NOTHING:
        return "{}"
    for text in (joined, *_others(pieces, joined)):
        found = _object_in(text)
        if found is not None:
            return found
    return joined


def is_repeated(pieces: Sequence[str], piece: str) -> bool:
    """Whether a piece says once more, whole, what the pieces before it said: nothing that readers have to see."""
    return len(piece) > 1 and piece[0] == "{" and piece == "".join(pieces)


def is_whole(pieces: Sequence[str]) -> bool:
    """Whether the pieces are an object already."""
    return bool(pieces) and _object_in("".join(pieces)) is not None


def is_same(text: str, whole: str) -> bool:
    """Whether a text says the same as arguments that are whole, however it is written."""
    try:
        return bool(load(arguments_of([text])) == load(arguments_of([whole])))
    except ValueError:
        return False


def _others(pieces: Sequence[str], joined: str) -> Iterable[str]:
    """Readings of pieces that are no JSON together."""
    grown = ""
    for piece in pieces:
        grown = piece if grown and piece.startswith(grown) else grown + piece
    yield grown
    yield pieces[-1]
    text = joined.strip()
    for count in (2, 3):
        part = text[: len(text) // count]
        if part * count == text:
            yield part
    if text.startswith("{}"):
        yield text[2:]
    yield _only_object_in(text)


def _only_object_in(text: str) -> str:
    """The object in a text that has one alone, or its end once more; else nothing."""
    before, brace, _ = text.partition("{")
    if not brace:
        return ""
    try:
        value, end = _read_value(text, len(before))
        rest = text[end:].strip()
        return "" if "{" in rest and not text[:end].endswith(rest) else dump(value)
    except (ValueError, RecursionError):
        return ""


def _object_in(text: str) -> str | None:
    """The text if it is a JSON object, or the one that is written as a text in it; `None` for anything else."""
    for _ in range(_MAX_NESTING):
        try:
            value: JSONValue = load(text)
        except ValueError:
            return None
        if isinstance(value, dict):
            return text
        if not isinstance(value, str):
            return None
        if value.strip() in _NOTHING:
            return "{}"
        text = value
    return None
