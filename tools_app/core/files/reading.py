"""Shows a file to a model: numbered lines within limits, sizes, and the kind of file. Pure."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

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
    if media_type == "application/octet-stream" and not _looks_like_text(data):
        return "binary", media_type
    return "text", media_type if media_type != "application/octet-stream" else "text/plain"


def shown_size(size: int) -> str:
    """A number of bytes for reading: `12 B`, `1.2 KB`, `3.4 MB`."""
    if size < 1024:
        return f"{size} B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f} KB"
    return f"{size / 1024 / 1024:.1f} MB"


def _looks_like_text(data: bytes) -> bool:
    """Text in another encoding than UTF-8, or with a few stray bytes: no NUL, and almost everything decodable."""
    if b"\x00" in data:
        return False
    text = data[:64_000].decode("utf-8", "replace")
    return text.count("\ufffd") * 10 <= len(text)
