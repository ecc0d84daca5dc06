"""Replace a text in the bytes of a file, or what an expression matches. Pure.

RE2 runs the expression, as in `searching`. Bytes that are no text stay as they are.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from tools_app.core.files.encodings import PLAIN, detected
from tools_app.core.files.globs import is_encodable
from tools_app.core.files.searching import MAX_FILE_BYTES, MAX_QUERY_CHARS, compile_expression
from tools_app.errors import ToolInputInvalid

MAX_CHANGED_BYTES: Final = 16 * 1024 * 1024
"""Of a file afterwards: a short text may stand for a long one in very many places."""

MAX_MATCHES: Final = 100_000
"""Of an expression in a file."""

_REFERENCE: Final = re.compile(r"\$(?:(?P<plain>[$&])|(?P<number>\d{1,2})|<(?P<name>\w+)>)")


class Replacement:
    """A text or an expression, and what to put in its place. May be used by several threads."""

    def __init__(self, search: str, replacement: str, *, is_regex: bool) -> None:
        """Compile. Errors: `ToolInputInvalid` with the reason.

        In the replacement of an expression `$1` to `$99` and `$<name>` are its groups, `$&` is all that it matched and
        `$$` a dollar, as in JavaScript; what names no group stands for itself. That of a text stands for itself.
        """
        if not search:
            raise ToolInputInvalid("it is empty")
        if is_regex and len(search) > MAX_QUERY_CHARS:
            raise ToolInputInvalid(f"it has more than {MAX_QUERY_CHARS} characters")
        if not is_encodable(search) or not is_encodable(replacement):
            raise ToolInputInvalid("it is no Unicode text")
        self._compiled = compile_expression(search, is_case_sensitive=True, has_groups=True) if is_regex else None
        self._search, self._replacement = search.encode(), replacement.encode()
        self._parts = [] if self._compiled is None else _parts(replacement, self._compiled)

    def applied(self, data: bytes, should_stop: Callable[[], bool] = lambda: False) -> tuple[bytes, int]:
        """The bytes afterwards, in the encoding that they had, and in how many places they changed.

        `should_stop`: asked at each match. Errors: `ToolInputInvalid` for what is too large or matches too often;
        `FileFailed` (`EILSEQ`) for a character that the encoding does not have.
        """
        encoding = detected(data) or PLAIN
        if encoding.codec == "utf-8":  # also with a mark, which an expression sees
            return self._applied(data, should_stop)
        text = encoding.decode(data, path="/")
        changed, count = self._applied(text.encode(), should_stop)
        return encoding.encode(changed.decode(), path="/"), count

    def _applied(self, data: bytes, should_stop: Callable[[], bool]) -> tuple[bytes, int]:
        if self._compiled is not None:
            return self._applied_expression(data, should_stop)
        count = data.count(self._search)
        if len(data) + count * (len(self._replacement) - len(self._search)) > max(MAX_CHANGED_BYTES, len(data)):
            raise _too_large()
        return data.replace(self._search, self._replacement), count

    def _applied_expression(self, data: bytes, should_stop: Callable[[], bool]) -> tuple[bytes, int]:
        if len(data) > MAX_FILE_BYTES:
            raise ToolInputInvalid(f"the file has more than {MAX_FILE_BYTES} bytes")
        pieces: list[bytes] = []
        at = size = count = 0
        for match in self._compiled.finditer(data):  # type: ignore[union-attr]  # the caller has looked
            start, end = match.span()
            if start == end and _is_within_character(data, start):
                continue
            count += 1
            if count > MAX_MATCHES or should_stop():
                raise ToolInputInvalid(f"it matches in more than {MAX_MATCHES} places, or was given up")
            made = b"".join(part if isinstance(part, bytes) else match[part] or b"" for part in self._parts)
            pieces += [data[at:start], made]
            size += start - at + len(made)
            at = end
            if size > MAX_CHANGED_BYTES:
                raise _too_large()
        return b"".join([*pieces, data[at:]]), count


def _parts(replacement: str, compiled: Any) -> list[bytes | int]:
    """The literal bytes of a replacement, and the numbers of its groups."""
    parts: list[bytes | int] = []
    at = 0
    for found in _REFERENCE.finditer(replacement):
        parts.append(replacement[at : found.start()].encode())
        parts += _meant(found, compiled)
        at = found.end()
    return [*parts, replacement[at:].encode()]


def _meant(found: re.Match[str], compiled: Any) -> list[bytes | int]:
    if found["plain"]:
        return [b"$" if found["plain"] == "$" else 0]
    if found["name"] in compiled.groupindex:
        return [compiled.groupindex[found["name"]]]
    digits = found["number"] or ""
    for length in range(len(digits), 0, -1):  # `$10` is the first group and a zero where there are fewer than ten
        if 0 < int(digits[:length]) <= compiled.groups:
            return [int(digits[:length]), digits[length:].encode()]
    return [found[0].encode()]


def _is_within_character(data: bytes, at: int) -> bool:
    return at < len(data) and data[at] & 0xC0 == 0x80


def _too_large() -> ToolInputInvalid:
    return ToolInputInvalid(f"the file would have more than {MAX_CHANGED_BYTES} bytes")
