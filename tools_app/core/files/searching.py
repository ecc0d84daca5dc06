"""Search the lines of a file for an expression. Pure.

RE2 runs the expression: its time is linear in the size of the file, whatever the expression is. It has no
backreferences and no lookaround.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import re2

from tools_app.core.files.encodings import as_utf_8
from tools_app.core.files.globs import is_encodable
from tools_app.core.files.reading import cut_line
from tools_app.errors import ToolInputInvalid

MAX_QUERY_CHARS: Final = 1_000
MAX_FILE_BYTES: Final = 1024 * 1024
MAX_SHOWN_CHARS: Final = 500
"""Of one line."""

MAX_PROGRAM: Final = 10_000
"""Instructions of a compiled expression. Time grows with the product of these and the bytes searched."""

_PIECE_BYTES: Final = 64 * 1024
_BINARY_HEAD: Final = 8_192
_OF_WHOLE_TEXTS: Final = re.compile(r"\\[AzZ]|\(\?\w*-")
"""Expressions that mean something else in a line than in a text of many lines."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line that matches, with its number from 1, and the lines around it if they were asked for."""

    number: int
    text: str
    context: str = ""


class Search:
    """A compiled expression. May be used by several threads."""

    def __init__(self, query: str, *, is_fixed: bool, is_case_sensitive: bool, context_lines: int = 0) -> None:
        """Compile. Errors: `ToolInputInvalid` with the reason for what is no expression."""
        if not query:
            raise ToolInputInvalid("it is empty")
        if len(query) > MAX_QUERY_CHARS:
            raise ToolInputInvalid(f"it has more than {MAX_QUERY_CHARS} characters")
        if not is_encodable(query):
            raise ToolInputInvalid("it is no Unicode text")
        expression = re2.escape(query) if is_fixed else query
        self._line = compile_expression(expression, is_case_sensitive=is_case_sensitive)
        self._anywhere = (
            None
            if _OF_WHOLE_TEXTS.search(expression)
            else compile_expression(f"(?m)(?:{expression})", is_case_sensitive=is_case_sensitive)
        )
        self._context_lines = context_lines

    def may_match(self, data: bytes) -> bool:
        """Whether a line of this text may match, which may be several texts with a newline between them."""
        if self._anywhere is None:
            return True
        return self._anywhere.search(data.replace(b"\r\n", b"\n") if b"\r" in data else data) is not None

    def lines_of(
        self, data: bytes, limit: int, should_stop: Callable[[], bool] = lambda: False, *, before: int = 0
    ) -> list[LineMatch]:
        """The lines that match, `limit` at most, in order; fewer once `should_stop`, asked now and then, is true.

        `before`: how many lines of the file come before these.
        """
        data = data.replace(b"\r\n", b"\n")
        lines: list[bytes] | None = None
        found: list[LineMatch] = []
        number = 0
        for piece in _pieces(data):
            if should_stop():
                break
            start = number
            number += piece.count(b"\n") + 1
            if self._anywhere is not None and self._anywhere.search(piece) is None:
                continue
            for index, line in enumerate(piece.split(b"\n"), start):
                if self._line.search(line) is None:
                    continue
                if lines is None:
                    lines = data.split(b"\n") if self._context_lines else []
                found.append(LineMatch(before + index + 1, _shown(line), self._context(lines, index, before)))
                if len(found) >= limit:
                    return found
        return found

    def _context(self, lines: list[bytes], index: int, before: int) -> str:
        if not self._context_lines:
            return ""
        first = max(0, index - self._context_lines)
        around = lines[first : index + self._context_lines + 1]
        return "\n".join(
            f"{'>' if at == index else ' '} {before + at + 1}\t{_shown(line)}" for at, line in enumerate(around, first)
        )


def compile_expression(expression: str, *, is_case_sensitive: bool, has_groups: bool = False) -> Any:
    """Compile an expression of RE2. `has_groups`: whether matches tell their groups, which takes longer.

    Errors: `ToolInputInvalid` with the reason for what is no expression.
    """
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = is_case_sensitive
    options.never_capture = not has_groups
    try:
        compiled = re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ToolInputInvalid(words) from error
    if compiled.programsize > MAX_PROGRAM:
        raise ToolInputInvalid("it is too large")
    return compiled


def _pieces(data: bytes) -> Iterator[bytes]:
    """Whole lines, some at a time, without the newline between two pieces."""
    start = 0
    while True:
        end = data.find(b"\n", start + _PIECE_BYTES)
        if end < 0:
            yield data[start:]
            return
        yield data[start:end]
        start = end + 1


def searchable(data: bytes) -> bytes | None:
    """The text of a file in UTF-8, whatever encoding it has, for `lines_of`; `None` for one that has no lines."""
    text = as_utf_8(data)
    return data if text is None and b"\x00" not in data[:_BINARY_HEAD] else text


def _shown(line: bytes) -> str:
    return cut_line(line.decode("utf-8", "replace"), MAX_SHOWN_CHARS)
