"""One disagreement between two places, and where in their bytes it begins. Knows nothing of the product."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One disagreement. `at`: the record, step or byte where it begins."""

    turn: str
    place: str
    what: str
    at: int = 0
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        shown = f": expected {self.expected!r}, found {self.found!r}" if self.expected or self.found else ""
        return f"{self.turn} | {self.place} | {self.what} at {self.at}{shown}"


def first_byte(expected: str, found: str) -> int:
    """Where two texts begin to differ, in bytes."""
    one, other = expected.encode("utf-8", "surrogatepass"), found.encode("utf-8", "surrogatepass")
    pairs = zip(one, other, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other)))


def canonical(value: Any) -> str:
    """JSON in which equal values are equal texts."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def differ(turn: str, place: str, what: str, expected: str, found: str) -> Difference:
    """Two texts that should be equal, cut around the first byte that is not."""
    at = first_byte(expected, found)
    near = slice(max(0, at - 30), at + 60)
    what = f"{what}, first differing byte {at}"
    return Difference(turn=turn, place=place, what=what, at=at, expected=expected[near], found=found[near])
