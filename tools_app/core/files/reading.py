"""Shows a file to a model: numbered lines within limits, sizes, and the kind of file. Pure."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tools_app.core.files.encodings import detected
from tools_app.core.files.media_types import sniff

MAX_LINES: Final = 2_000
MAX_LINE_CHARS: Final = 2_000
LINE_CUT: Final = "... (truncated)"
PDF: Final = "application/pdf"

FileKind: TypeAlias = Literal["text", "image", "file", "binary"]
"""Text, a picture, another file that models can be given (a PDF), or what they cannot read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Lines of a text with their numbers, from the first to the last shown; `total_lines` of the whole text."""

    content: str
    total_lines: int
    first: int
    last: int


def count_lines(text: str) -> int:
    """Lines of a text; a newline at its end ends the last one and begins none."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def numbered(text: str, *, offset: int = 1, limit: int | None = None) -> Page:
    r"""Show lines as `<number>\t<text>`. `offset`: the first line, from 1; one beyond the end shows nothing.

    Lines above 2000 characters are cut, and no more than 2000 lines are shown; how many followed is said.
    """
    lines = text.split("\n")[: max(count_lines(text), 1)]
    wanted = lines[offset - 1 : None if limit is None else offset - 1 + limit]
    shown = [
        f"{number}\t{cut_line(line.removesuffix(chr(13)))}" for number, line in enumerate(wanted[:MAX_LINES], offset)
    ]
    last = offset + len(shown) - 1
    if len(wanted) > MAX_LINES:
        shown.append(f"... ({len(wanted) - MAX_LINES} more lines truncated)")
    return Page(content="\n".join(shown), total_lines=count_lines(text), first=offset, last=last)


class LineWindow:
    """A page of a text that comes in pieces, as `numbered` shows it; what is beyond the page is only counted."""

    def __init__(self, first: int, limit: int | None) -> None:
        """`first`: the first line, from 1."""
        self._first = first
        self._limit = limit
        self._last = first + min(MAX_LINES if limit is None else limit, MAX_LINES) - 1
        self._number = 1  # of the line that goes on
        self._is_open = False  # whether there is anything of it
        self._lines: dict[int, str] = {}

    def feed(self, text: str) -> None:
        """Take in the next piece."""
        if not text:
            return
        ends = text.count("\n")
        if self._number + ends >= self._first and self._number <= self._last:
            for number, part in enumerate(text.split("\n"), self._number):
                if self._first <= number <= self._last:
                    self._lines[number] = (self._lines.get(number, "") + part)[: MAX_LINE_CHARS + 2]
        self._number += ends
        self._is_open = not text.endswith("\n")

    def page(self) -> Page:
        """The lines, once all of the text was taken in."""
        total = self._number - 1 + self._is_open
        last = min(self._last, max(total, 1))
        shown = [
            f"{number}\t{cut_line(self._lines.get(number, '').removesuffix(chr(13)))}"
            for number in range(self._first, last + 1)
        ]
        wanted = total - self._first + 1 if self._limit is None else min(self._limit, total - self._first + 1)
        if wanted > MAX_LINES:
            shown.append(f"... ({wanted - MAX_LINES} more lines truncated)")
        return Page(content="\n".join(shown), total_lines=total, first=self._first, last=max(last, self._first - 1))


def cut_line(line: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Cut a line that is too long to be shown."""
    return line if len(line) <= max_chars else line[:max_chars] + LINE_CUT


def kind_of(data: bytes, name: str) -> tuple[FileKind, str]:
    """Kind and media type of a file, from its bytes. SVG is text: that is how models can read and edit it."""
    media_type = sniff(data, name)
    if media_type.startswith("image/"):
        return "image", media_type
    if media_type == PDF:
        return "file", media_type
    if media_type == "application/octet-stream" and detected(data) is None:
        return "binary", media_type
    return "text", media_type if media_type != "application/octet-stream" else "text/plain"


def shown_size(size: int) -> str:
    """A number of bytes for reading: `12 B`, `1.2 KB`, `3.4 MB`."""
    if size < 1024:
        return f"{size} B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f} KB"
    return f"{size / 1024 / 1024:.1f} MB"
