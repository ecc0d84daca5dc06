"""Bytes that are written as text, in the files that people bring: named, so that none enters a prompt. Pure."""

import re
from typing import Final

_DATA: Final = re.compile(
    r"data:([a-z]+/[a-z0-9.+-]+)(?:;[a-z0-9=_.-]+)*;base64,"
    r"[A-Za-z0-9+/=%]{24,}(?:\s+[A-Za-z0-9+/=%]{60,})*(?:\s+[A-Za-z0-9+/%]*=)?",
    re.IGNORECASE,
)
_RUN: Final = re.compile(
    r"(?<![A-Za-z0-9+/])(?:"
    r"[A-Za-z0-9+/]{4000,}={0,2}"
    r"|(?:[A-Za-z0-9+/]{60,80}(?:\\n|\r?\n)){50,}(?:[A-Za-z0-9+/]{1,80}={0,2})?"
    r")"
)
"""Longer than keys, certificates and tokens, which people ask about; in one piece, or in lines as mails have them."""
_BETWEEN: Final = re.compile(r"\\n|\s")
_LETTERS: Final = tuple(re.compile(each) for each in ("[a-z]", "[A-Z]", "[0-9]"))


def without_data(text: str) -> str:
    """Text with names in the place of `data:` URLs and of long runs of base64."""
    text = _DATA.sub(lambda found: f"[{found[1]}, {_size(found[0])}]", text)
    return _RUN.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    is_base64 = all(letters.search(found[0]) for letters in _LETTERS)  # sequences and digests have fewer kinds
    return f"[base64, {_size(_BETWEEN.sub('', found[0]))}]" if is_base64 else found[0]


def _size(encoded: str) -> str:
    return f"{len(encoded) * 3 // 4:,} bytes"
