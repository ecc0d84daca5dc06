"""The beginning of a message's text, found in the first characters of its JSON: lists do not read whole messages."""

import json
import re
from typing import Final

START_CHARS: Final = 2_000
SHOWN_CHARS: Final = 90

_STRING: Final = r'"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)'  # as far as it goes, whole escapes only
_TEXT: Final = re.compile(rf'"type":\s*"text"[^{{}}]*?"text":\s*{_STRING}', re.DOTALL)
_TEXT_FIRST: Final = re.compile(rf'"text":\s*{_STRING}"?,\s*"type":\s*"text"', re.DOTALL)


def beginning_of(start: str) -> str:
    """The first words of the first text in a cut-off JSON of a message; empty when there is none so early."""
    found = _TEXT.search(start) or _TEXT_FIRST.search(start)
    if found is None:
        return ""
    text = " ".join(_decoded(found[1]).split())
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"


def _decoded(escaped: str) -> str:
    text = str(json.loads(f'"{escaped}"', strict=False))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # a cut leaves half a character
