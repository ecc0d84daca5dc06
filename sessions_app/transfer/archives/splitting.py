"""A JSON file of any size as its elements, one at a time: the objects of a list, or the one object that it is.

Only the brackets are followed here, and each element is decoded alone. So one that is broken (a number without end, a
lone surrogate, NaN, a byte that is no UTF-8) does not take the ones behind it along, as it does with parsers that
decode the whole stream, and one that is too large is passed over in bounded memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import IO, Final

PIECE_BYTES: Final = 1024 * 1024
MAX_ELEMENT_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_SPACES: Final = b" \t\r\n"
_WITHIN: Final = rb'(?>(?:[^"\\]++|\\.)*)'
"""The inside of a string. Atomic and not possessive: Python before 3.11.5 loses its place in possessive groups
(github.com/python/cpython/issues/106052)."""
_NEXT: Final = re.compile(rb'[^{}\[\]"]*+(?>(?:"%b"[^{}\[\]"]*+)*)([{}\[\]"])' % _WITHIN, re.DOTALL)
"""Up to the next bracket outside of strings, or to the beginning of a string that does not end in this piece."""
_STRING: Final = re.compile(_WITHIN, re.DOTALL)
_OPENING: Final = frozenset(b"{[")
_LIST: Final = ord("[")
_QUOTE: Final = ord('"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """The place of an element that cannot be given, or the end of a file that ends too early. `reason`: for people."""

    reason: str


def elements(file: IO[bytes], *, max_bytes: int = MAX_ELEMENT_BYTES) -> Iterator[bytes | Flaw]:
    """The elements in order, each as its bytes. Values of a list that are no objects or lists are passed over."""
    splitter = _Splitter(max_bytes)
    rest = b""
    head = file.read(len(_BOM)).removeprefix(_BOM)
    for piece in chain([head], iter(partial(file.read, PIECE_BYTES), b"")):
        yield from splitter.feed(rest + piece)
        rest = splitter.rest
        if splitter.is_over:
            return
    yield from splitter.end()


class _Splitter:
    """The place in a file: how deep, in a string or not, and what of an element was read."""

    def __init__(self, max_bytes: int) -> None:
        self.rest = b""  # of a piece: belongs before the next one
        self.is_over = False
        self._max_bytes = max_bytes
        self._base = -1  # the depth at which elements begin, once the first bracket was seen
        self._depth = 0
        self._in_string = False
        self._element: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | Flaw]:
        """Take a piece, and give the elements that end in it. What is left over is `rest`."""
        self.rest = b""
        at = self._begin(data) if self._base < 0 else 0
        if self._base < 0:
            if at < len(data):
                self.is_over = True
                yield Flaw(reason="It is not JSON.")
            return
        start = at
        for end in self._brackets(data, at):
            if data[end - 1] in _OPENING:
                if self._depth == self._base:
                    start = end - 1
                    self._element, self._size = [], 0
                self._depth += 1
                continue
            self._depth -= 1
            if self._depth == self._base:
                self._keep(data[start:end])
                yield self._ended()
            if self._depth <= 0:
                self.is_over = True
                return
        if self._depth > self._base:
            self._keep(data[start : len(data) - len(self.rest)])

    def _begin(self, data: bytes) -> int:
        """Place of the first value; a list has its elements one level deeper than an object."""
        at = len(data) - len(data.lstrip(_SPACES))
        if data[at : at + 1] in {b"[", b"{"}:
            self._base = 1 if data[at] == _LIST else 0
        return at

    def _brackets(self, data: bytes, at: int) -> Iterator[int]:
        """The places behind the brackets outside of strings. Half an escape at the end is left for the next piece."""
        while at < len(data):
            if self._in_string:
                match = _STRING.match(data, at)
                at = at if match is None else match.end()
                if data[at : at + 1] != b'"':
                    self.rest = data[at:]
                    return
                self._in_string = False
                at += 1
                continue
            match = _NEXT.match(data, at)
            if match is None:
                return
            at = match.end()
            self._in_string = data[at - 1] == _QUOTE
            if not self._in_string:
                yield at

    def end(self) -> Iterator[Flaw]:
        if self._base < 0:
            yield Flaw(reason="It is empty.")
        elif not self.is_over:
            yield Flaw(reason="The file ends in the middle: what comes after this is missing.")

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            self._element = []
        else:
            self._element.append(piece)

    def _ended(self) -> bytes | Flaw:
        if self._size > self._max_bytes:
            return Flaw(reason=f"It is larger than {self._max_bytes // (1024 * 1024)} MB.")
        found = b"".join(self._element)
        self._element = []
        return found
