"""Pieces of Markdown that all readers write, and the limit of what they write."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tools_app.core.files.embedded import without_data

MAX_CHARS: Final = 1_000_000
"""Of the text of one file: a model takes a few hundred thousand at most."""

LONGER: Final = "(The file is longer. The rest of it was not read.)"

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_BLANKS: Final = re.compile(r"\n{3,}")


class NoText(Exception):
    """A file without text for models. Its argument: a sentence with the reason, and what to do."""


class TextWriter:
    """Text in the making, up to the limit. `is_full`: there is no more room, so a reader can stop."""

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self._pieces: list[str] = []
        self._room = max_chars
        self.is_full = False

    def add(self, piece: str) -> None:
        """Add a paragraph, or as much of it as there is room for."""
        self.is_full = self.is_full or len(piece) > self._room
        kept = piece[: max(self._room, 0)]
        self._room -= len(kept)
        self._pieces.append(kept)

    def text(self) -> str:
        """All of it, paragraphs apart, with a line at its end where something had no room."""
        return "\n\n".join(piece for piece in [*self._pieces, LONGER if self.is_full else ""] if piece)


def cleaned(text: str) -> str:
    """Text without control characters and encoded bytes, with one empty line at most between paragraphs."""
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _BLANKS.sub("\n\n", without_data(text)).strip("\n").rstrip()


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as a table of Markdown, the first one as its head."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    if not lines:
        return ""
    columns = lines[0].count(" | ") + 1
    return "\n".join([lines[0], f"|{' --- |' * columns}", *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
