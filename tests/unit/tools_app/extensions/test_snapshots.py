"""Snapshots for hooks: plain JSON of bounded depth and size."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from thinkproject.kernel.jsonvalue import dump
from tools_app.core.extensions.manifest import parse_permissions
from tools_app.core.extensions.snapshots import CUT, MAX_CHARS, MAX_ITEMS, redacted, snapshot


@dataclass
class Point:
    x: int
    inner: Any


class Word(StrEnum):
    ONE = "one"


def nested(levels: int) -> Any:
    return {"in": nested(levels - 1)} if levels else "bottom"


def test_it_is_six_levels_deep() -> None:
    assert snapshot(nested(6)) == nested(6)
    found: Any = snapshot(nested(9))
    for _ in range(6):
        found = found["in"]
    assert found == CUT


def test_functions_are_left_out_and_errors_are_flat() -> None:
    value = {"f": print, "e": ValueError("no"), "list": [len, 1], "word": Word.ONE, "point": Point(x=1, inner=(2,))}
    assert snapshot(value) == {
        "e": {"name": "ValueError", "message": "no"},
        "list": [1],
        "word": "one",
        "point": {"x": 1, "inner": [2]},
    }


def test_it_is_json_whatever_it_is_made_of() -> None:
    circle: list[Any] = []
    circle.append(circle)
    value = {"nan": float("nan"), "inf": float("inf"), "bytes": b"x", 5: {1, 2}, "circle": circle, "object": object()}
    dump(snapshot(value))


def test_it_is_bounded() -> None:
    found: Any = snapshot({"text": "x" * 1_000_000, "items": list(range(10_000))})
    assert (len(found["text"]), len(found["items"])) == (MAX_CHARS, MAX_ITEMS)


EVENT = {"toolName": "a_b", "callId": "c", "input": {"x": 1}, "output": 2, "system": "S", "body": {}, "text": "t"}


@pytest.mark.parametrize(
    ("permissions", "own", "seen"),
    [
        ({}, [], {"toolName", "callId"}),
        ({}, ["a_b"], {"toolName", "callId", "input", "output"}),
        ({"messages": "read"}, [], set(EVENT) - {"system"}),
        ({"context": {"read": "all"}}, [], {"toolName", "callId", "system"}),
        ({"context": {"read": ["x"]}}, [], {"toolName", "callId"}),
    ],
)
def test_it_is_cut_to_the_permissions(permissions: Any, own: list[str], seen: set[str]) -> None:
    assert set(redacted(dict(EVENT), parse_permissions(permissions), frozenset(own))) == seen
