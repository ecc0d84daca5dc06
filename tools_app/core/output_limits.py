"""Cuts a tool's output to what a model is sent, in its shape, with a mark; and pages through the whole.

The size that counts is the UTF-8 of a text, or of a value's compact JSON.
"""

import json
from dataclasses import dataclass
from typing import Final

from sessions_app.core.messages.shortening import shorten
from sessions_app.core.messages.truncation import FORMER, cut_text, dropped_chars
from thinkproject.kernel.jsonvalue import JSONValue, dump

MIN_BYTES: Final = 256
"""A limit below this is taken for this: less has no room for the mark."""

LINE_CHARS: Final = 2_000
"""A longer line is read in pieces of this length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimit:
    """The most of an output that a model is sent, and that its message keeps. `None`: no limit of that kind.

    `lines` are of texts, also of texts inside of an object; `max_bytes` of the whole.
    """

    lines: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPage:
    """Lines of a whole output. Shape: `first_line` counts from 1; `next_line` is 0 at the end."""

    text: str
    first_line: int
    next_line: int
    line_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOutput:
    """An output within its limit. `next_line`: of the whole, where a text was cut; 0 where only its pages tell."""

    output: JSONValue
    next_line: int = 0


def cut_output(output: JSONValue, limit: OutputLimit) -> CutOutput | None:
    """Cut an output that is over its limit, in its shape; nothing where it fits.

    Of a text its beginning and its end stay, with one notice between them: a run says at its end how it went. What was
    cut fits, and is not cut again.
    """
    if isinstance(output, str):
        ends = _ends(output, limit)
        return None if ends is None else CutOutput(output=ends.marked, next_line=ends.next_line)
    value = _cut_lines(output, limit)
    if limit.max_bytes is not None and _size(value) > limit.max_bytes:
        value = _shorten(value, max(limit.max_bytes, MIN_BYTES))
    return None if value == output else CutOutput(output=value)


def page_of(output: JSONValue, *, first_line: int, max_lines: int, max_bytes: int) -> OutputPage:
    """Lines of an output from `first_line` on, as many as fit, and at least one."""
    lines = lines_of(output)
    start = min(max(first_line, 1), len(lines)) - 1
    taken: list[str] = []
    used = 0
    for line in lines[start : start + max(max_lines, 1)]:
        used += _size(line) + 1
        if taken and used > max_bytes:
            break
        taken.append(line)
    end = start + len(taken)
    return OutputPage(
        text="\n".join(taken),
        first_line=start + 1,
        next_line=end + 1 if end < len(lines) else 0,
        line_count=len(lines),
    )


def lines_of(output: JSONValue) -> list[str]:
    """The lines of an output; one longer than `LINE_CHARS` is several, so that all of it can be reached."""
    made: list[str] = []
    for line in as_text(output).split("\n"):
        made.extend(line[at : at + LINE_CHARS] for at in range(0, len(line) or 1, LINE_CHARS))
    return made


def as_text(output: JSONValue) -> str:
    """An output as a text that people and models read by lines: of an object a field after the other."""
    if isinstance(output, str):
        return output
    if not isinstance(output, dict):
        return json.dumps(output, ensure_ascii=False, indent=2)
    return "\n".join(f"{key}:{_field_text(value)}" for key, value in output.items())


def _field_text(value: JSONValue) -> str:
    if isinstance(value, str):
        return f"\n{value}" if "\n" in value else f" {value}"
    return f" {json.dumps(value, ensure_ascii=False, indent=2)}"


@dataclass(frozen=True, slots=True)
class _Ends:
    """The beginning and the end of a text, and what is left out between them."""

    head: str
    dropped: str
    tail: str

    @property
    def marked(self) -> str:
        """Both, with the notice."""
        missing = self.dropped.count("\n") or 1
        lines = f"{missing} more {'line' if missing == 1 else 'lines'}"
        notice = f"... [{lines}, {dropped_chars(self.dropped)} characters truncated]"
        return f"{self.head}\n{notice} ...\n{self.tail}" if self.tail else f"{self.head}\n{notice}"

    @property
    def next_line(self) -> int:
        """The line of the whole at which to read on."""
        return len(lines_of(self.head.removesuffix("\n"))) + 1


def _ends(text: str, limit: OutputLimit) -> _Ends | None:
    """Cut a text to its ends; nothing where all of it fits. A line that is a notice of ours is not counted."""
    head = tail = ""
    lines = text.split("\n")
    is_over = limit.lines is not None and len(lines) - len(FORMER.findall(text)) > limit.lines
    if is_over:
        assert limit.lines is not None
        end_lines = limit.lines // _END_SHARE
        head = "\n".join(lines[: limit.lines - end_lines])
        tail = "\n".join(lines[len(lines) - end_lines :]) if end_lines else ""
    if limit.max_bytes is not None and (_size(head + tail) + _MARK_ROOM if is_over else _size(text)) > limit.max_bytes:
        room = max(limit.max_bytes, MIN_BYTES) - _MARK_ROOM
        whole = text if not is_over else ""
        head = _whole_lines(_head(whole or head, room - room // _END_SHARE))
        tail = _whole_lines(_tail(whole or tail, room // _END_SHARE), is_end=True)
        is_over = True
    return _Ends(head, text[len(head) : len(text) - len(tail)], tail) if is_over else None


def _whole_lines(piece: str, *, is_end: bool = False) -> str:
    """The piece without the part of a line at its cut side, unless that is most of it."""
    whole = piece.partition("\n")[2] if is_end else piece.rpartition("\n")[0]
    return whole if len(whole) >= len(piece) // 2 else piece


_MARK_ROOM: Final = 96
_END_SHARE: Final = 3


def _cut_lines(value: JSONValue, limit: OutputLimit, depth: int = 0) -> JSONValue:
    """Cut texts with too many lines inside of a value; the same object where there is none."""
    if limit.lines is None or depth > 100:
        return value
    if isinstance(value, str):
        ends = _ends(value, OutputLimit(lines=limit.lines))
        return value if ends is None else ends.marked
    if isinstance(value, dict):
        fields = {key: _cut_lines(item, limit, depth + 1) for key, item in value.items()}
        return value if fields == value else fields
    if isinstance(value, list):
        items = [_cut_lines(item, limit, depth + 1) for item in value]
        return value if items == value else items
    return value


def _shorten(value: JSONValue, max_bytes: int) -> JSONValue:
    """Shorten a value in its shape. Lengths are counted in characters there, so the budget shrinks until bytes fit."""
    budget = max_bytes
    for _ in range(4):
        kept = shorten(value, budget, cut_text)
        size = _size(kept)
        if size <= max_bytes:
            return kept
        budget = budget * max_bytes // size - 1
    return shorten(value, max_bytes // 6, cut_text)  # a character has four bytes at most, an escaped one six


def _size(value: JSONValue) -> int:
    return len((value if isinstance(value, str) else dump(value)).encode("utf-8", "replace"))


def _head(text: str, max_bytes: int) -> str:
    """The first so many bytes of a text; a character that would be split is left out."""
    return text if len(text) * 4 <= max_bytes else text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def _tail(text: str, max_bytes: int) -> str:
    """The last so many bytes of a text; a character that would be split is left out."""
    if max_bytes <= 0:
        return ""
    return (
        text if len(text) * 4 <= max_bytes else text.encode("utf-8", "replace")[-max_bytes:].decode("utf-8", "ignore")
    )
