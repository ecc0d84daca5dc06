"""Cleaning of external texts for storage and display: removes prefixes before an answer and deceptive characters."""

import re
import unicodedata
from typing import Final

_OPENING: Final = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CLOSING: Final = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_ANY_OPENING: Final = re.compile(r"<think(?:ing)?>", re.IGNORECASE)

# Lines of Markdown that hold no words: fences, rules, and what stands below the head of a table.
_EMPTY_LINE: Final = re.compile(
    r"^[ \t]*(?:(?:`{3,}|~{3,})[^\n`]*|(?:[-*_][ \t]*){3,}|\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?)$\n?",
    re.MULTILINE,
)
_LINE_MARK: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|\|[ \t]*)|[ \t]*\|[ \t]*$", re.MULTILINE
)
_INLINE: Final = re.compile(
    r"(?<!`)(?P<ticks>`{1,2})(?!`)[ ]?(?P<code>[^`\n]{1,200}?)[ ]?(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\]\n]{0,200})\]\([^()\s]{0,2000}(?:[ ]\"[^\"\n]{0,200}\")?\)"
    r"|(?P<mark>\*{1,3}|~~)(?=[^\s*~])(?P<marked>[^\n]{1,200}?)(?<=[^\s*~])(?P=mark)(?!\*)"
    r"|(?<!\w)_(?=[^\s_])(?P<slanted>[^_\n]{1,200}?)(?<=[^\s_])_(?!\w)"
    r"|(?<!\w)__(?=[^\s_])(?P<bold>[^_\n]{1,100}[ ][^_\n]{1,100})(?<=[^\s_])__(?!\w)"
    r"|\\(?P<escaped>[\\`*_~#\[\]()>|.!+-])"
)
_MAX_NESTING: Final = 3


def storable(text: str) -> str:
    """A text as every database stores it: PostgreSQL takes neither NUL nor half a character."""
    return text.replace("\0", "").encode(errors="replace").decode()


def without_thoughts(text: str) -> str:
    """A model's answer without what some models think aloud in front of it.

    The opening tag may be missing. Thoughts that do not end are all there is of the answer. Tags further down are the
    answer's own words.
    """
    closing = _CLOSING.search(text)
    if _OPENING.match(text):
        return text[closing.end() :].strip() if closing else ""
    if closing and not _ANY_OPENING.search(text, 0, closing.start()):
        return text[closing.end() :].strip()
    return text.strip()


def visible(text: str) -> str:
    """A text on one line, without invisible characters and direction overrides."""
    shown = "".join(" " if char.isspace() else char for char in text if char.isspace() or _is_shown(char))
    return " ".join(shown.split())


def _is_shown(char: str) -> bool:
    """Whether a character is neither a control character nor a direction override. Emoji joiners are allowed."""
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"} or char == "\u200d"


def without_markup(text: str) -> str:
    """A text without the marks of Markdown, for a line that is not rendered. Only marks that come in pairs go.

    Names as `__init__` and `**options` stay. Meant for short texts.
    """
    return _without_inline(_LINE_MARK.sub("", _EMPTY_LINE.sub("", text)), _MAX_NESTING)


def _without_inline(text: str, depth: int) -> str:
    def content(found: re.Match[str]) -> str:
        literal = found["code"] or found["escaped"]
        inner = found["label"] or found["marked"] or found["slanted"] or found["bold"] or ""
        return literal or _without_inline(inner, depth - 1)

    return _INLINE.sub(content, text) if depth else text
