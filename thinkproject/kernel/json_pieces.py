"""Decode large JSON text in small pieces, so that the thread that does it does not hold up the others.

`json.loads` is one call into C and holds the interpreter's lock until it ends: seconds for 16 MB of empty lists. Here
no such call sees more than one piece, except for a single long string, which is fast. The result is the one of `load`,
except that a number with as many characters as a piece is refused.
"""

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs, public in its module
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, refuse_constant

PIECE_CHARS: Final = 65_536
PIECE_VALUES: Final = 500
MAX_DEPTH: Final = 200

_UNDECIDED: Final = 4
"""Characters at the end of a piece that a number may need to be read right: `1e+` is no `1`."""

_SPACES: Final = frozenset(" \t\n\r")
_whitespace = re.compile(r"[ \t\n\r]*")
_scan = json.JSONDecoder(parse_constant=refuse_constant).scan_once  # type: ignore[attr-defined]  # as above


class JSONTooComplex(ValueError):
    """The text has more values, or a deeper nesting, than its reader allows."""


def load_in_pieces(text: str, *, max_values: int, pause: Callable[[], None]) -> JSONValue:
    """Decode JSON text; `pause` is called after each piece, of so many characters or values.

    Errors: `JSONTooComplex` beyond `max_values` values, before more than one piece of them exists; `ValueError` as
    `load`.
    """
    return _Reader(text, max_values, pause).read()


class _Reader:
    """One text and how far it was read. `_stack`: the large containers that are open, each with its pending key."""

    def __init__(self, text: str, max_values: int, pause: Callable[[], None]) -> None:
        self._text = text
        self._left = max_values
        self._pause_at = max_values - PIECE_VALUES
        self._pause = pause
        self._at = 0  # absolute
        self._piece, self._begin = "", 0  # what of the text is at hand, and where it begins
        self._stack: list[tuple[JSONObject | list[JSONValue], str]] = []

    def read(self) -> JSONValue:
        """Read the whole text."""
        value = self._value()
        while self._stack:
            container, key = self._stack[-1]
            if isinstance(container, dict):
                container[key] = value
            else:
                container.append(value)
            value = self._after_item(container)
        if self._peek():
            raise ValueError(f"Extra data at {self._at}")
        return value

    def _after_item(self, container: JSONObject | list[JSONValue]) -> JSONValue:
        """Go on behind an item: the next item of the container, or the container itself once it is closed."""
        mark = self._peek()
        self._at += 1
        if mark == ("}" if isinstance(container, dict) else "]"):
            self._stack.pop()
            return container
        if mark != ",":
            raise ValueError(f"Expecting ',' delimiter at {self._at - 1}")
        self._next_key(container)
        return self._value()

    def _next_key(self, container: JSONObject | list[JSONValue]) -> None:
        key = ""
        if isinstance(container, dict):
            if self._peek() != '"':
                raise ValueError(f"Expecting a property name at {self._at}")
            key, self._at = scanstring(self._text, self._at + 1, True)
            if self._peek() != ":":
                raise ValueError(f"Expecting ':' delimiter at {self._at}")
            self._at += 1
        self._stack[-1] = (container, key)

    def _value(self) -> JSONValue:
        """The value that begins here, or, of a large container, its first item with the container on the stack."""
        while True:
            mark = self._peek()
            if not mark:
                raise ValueError(f"Expecting a value at {self._at}")
            found = self._small()
            if found is not None:
                return found[0]
            if mark == '"':
                value, self._at = scanstring(self._text, self._at + 1, True)
                self._count(1)
                return value
            if mark not in "[{":
                raise ValueError(f"Expecting a value at {self._at}")
            container: JSONObject | list[JSONValue] = {} if mark == "{" else []
            self._count(1)
            if len(self._stack) >= MAX_DEPTH:
                raise JSONTooComplex("nested too deeply")
            self._at += 1
            if self._peek() == ("}" if mark == "{" else "]"):
                self._at += 1
                return container
            self._stack.append((container, ""))
            self._next_key(container)

    def _small(self) -> tuple[JSONValue] | None:
        """The value that begins here if it ends within a piece."""
        for is_fresh in (False, True):
            if is_fresh and not self._cut():
                return None
            try:
                value, end = _scan(self._piece, self._at - self._begin)
            except (StopIteration, json.JSONDecodeError):
                continue
            except RecursionError as error:
                raise JSONTooComplex("nested too deeply") from error
            if end + _UNDECIDED < len(self._piece) or self._begin + len(self._piece) >= len(self._text):
                self._at = self._begin + end
                self._count(_values_in(value, self._left))
                return (value,)
        return None

    def _cut(self) -> bool:
        """Take the piece that begins here; False when it is at hand already."""
        if self._begin == self._at and self._piece:
            return False
        self._pause()
        self._begin = self._at
        self._piece = self._text[self._at : self._at + PIECE_CHARS]
        return True

    def _peek(self) -> str:
        """The next character that is no whitespace; empty at the end."""
        at = self._at
        if self._text[at : at + 1] in _SPACES:
            found = _whitespace.match(self._text, at)
            self._at = at = found.end() if found else at
        return self._text[at : at + 1]

    def _count(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise JSONTooComplex("too many values")
        if self._left < self._pause_at:
            self._pause_at = self._left - PIECE_VALUES
            self._pause()


def _values_in(value: JSONValue, limit: int) -> int:
    """Number of values in a JSON value, including itself; stops counting at the limit."""
    count, containers = 1, [value]
    while containers and count <= limit:
        node = containers.pop()
        items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        count += len(items)
        containers += [item for item in items if isinstance(item, dict | list)]
    return count
