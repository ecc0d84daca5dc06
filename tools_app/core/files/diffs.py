"""Unified diffs of two files. Pure."""

import difflib
from typing import Final

from tools_app.core.files.failures import failed

MAX_LINES: Final = 10_000
CONTEXT_LINES: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file\n"


def unified(before: str, after: str, path: str, other: str) -> str:
    """Compare two texts; empty when they are equal. Takes seconds for long ones, so not on the event loop.

    Errors: `EFBIG` where one has more than 10 000 lines.
    """
    if before == after:
        return ""
    old, new = lines_of(before), lines_of(after)
    for lines, name in ((old, path), (new, other)):
        if len(lines) > MAX_LINES:
            raise failed("EFBIG", name, f"more than {MAX_LINES} lines to compare")
    found = difflib.unified_diff(old, new, path, other, n=CONTEXT_LINES)
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in found)


def lines_of(text: str) -> list[str]:
    """Lines of a text with their ends. Only a newline ends one: `splitlines` would also split at form feeds."""
    parts = text.split("\n")
    last = parts.pop()
    return [f"{part}\n" for part in parts] + ([last] if last else [])
