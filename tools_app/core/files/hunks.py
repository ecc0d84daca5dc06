"""The places in which two texts differ, each of which can be taken back by itself. Pure.

A hunk is known by its lines, not by where they are: what was decided about one stands while others come and go, and no
longer once its lines change.
"""

import difflib
import hashlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tools_app.core.files.diffs import CONTEXT_LINES, lines_of

_ID_CHARS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines with their signs and ends, three equal ones around them.

    `start`, `end`: lines of the text before, from 0; `start_after`, `end_after`: of the text after.
    """

    id: str
    start: int
    end: int
    start_after: int
    end_after: int
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        """The line with which a unified diff begins it."""
        return f"@@ -{_range(self.start, self.end)} +{_range(self.start_after, self.end_after)} @@"


def hunks_of(before: str, after: str, path: str) -> list[Hunk]:
    """The hunks by their place; none of equal texts. Takes seconds for long texts: not on the event loop."""
    old, new = lines_of(before), lines_of(after)
    found: list[Hunk] = []
    known: Counter[str] = Counter()
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES):
        lines: list[str] = []
        for tag, start, end, start_after, end_after in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[start:end]]
                continue
            lines += [f"-{line}" for line in old[start:end]]
            lines += [f"+{line}" for line in new[start_after:end_after]]
        digest = hashlib.sha256("\0".join([path, *lines]).encode(errors="surrogatepass")).hexdigest()
        known[digest] += 1
        found.append(
            Hunk(
                id=digest[:_ID_CHARS] if known[digest] == 1 else f"{digest[:_ID_CHARS]}-{known[digest]}",
                start=group[0][1],
                end=group[-1][2],
                start_after=group[0][3],
                end_after=group[-1][4],
                lines=tuple(lines),
            )
        )
    return found


def without_hunks(before: str, after: str, hunks: Collection[Hunk]) -> str:
    """The text after, with these of its hunks as they were before; nothing else of it changes."""
    old, new = lines_of(before), lines_of(after)
    for hunk in sorted(hunks, key=lambda each: each.start_after, reverse=True):
        new[hunk.start_after : hunk.end_after] = old[hunk.start : hunk.end]
    return "".join(new)


def _range(start: int, end: int) -> str:
    """A range as unified diffs write it: the line before an empty one."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"
