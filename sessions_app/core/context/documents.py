"""Documents that describe themselves: a head of `key: value` lines between two lines of `---`, then the text. Pure."""

import re
from dataclasses import dataclass
from typing import Final

FILE_NAME: Final = "SKILL.md"
HEAD_CHARS: Final = 8192  # a head is looked for in these
_FENCE: Final = "---"
_FIELD: Final = re.compile(r"(?P<name>[A-Za-z][\w-]*)\s*:\s*(?P<value>.*)")
_FOLDED: Final = {">", "|", ">-", "|-", ">+", "|+"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document: its front matter and its text."""

    name: str
    description: str
    text: str


def read_document(source: str, *, name: str) -> Document:
    """Read a document. Without a head it has the given name, and its first line of words is the description."""
    text = source.removeprefix("\ufeff").replace("\r\n", "\n")
    head, text = split_head(text) or ("", text)
    fields = _fields(head.split("\n"))
    return Document(
        name=fields.get("name") or name, description=fields.get("description") or _first_words(text), text=text
    )


def begins_with_head(source: str) -> bool:
    """Whether the first line opens a head, which need not end."""
    return source.split("\n", 1)[0].rstrip() == _FENCE


def split_head(source: str, *, max_chars: int | None = None) -> tuple[str, str] | None:
    """The head without its fences, and the text; nothing where no whole head is at the beginning, in `max_chars`."""
    lines = source[: None if max_chars is None else max_chars + len(_FENCE)].split("\n")
    if not begins_with_head(source):
        return None
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number]), source[len("\n".join(lines[: number + 1])) :].lstrip("\n")
    return None


def _fields(head: list[str]) -> dict[str, str]:
    """Parse simple front-matter fields. An indented line continues the one above; other lines are ignored."""
    fields: dict[str, str] = {}
    current = ""
    for line in head:
        if line[:1].isspace():
            if current and line.strip():
                fields[current] = f"{fields[current]} {line.strip()}".strip()
            continue
        found = _FIELD.match(line)
        current = found["name"].lower() if found else ""
        if found:
            value = found["value"].strip()
            fields[current] = "" if value in _FOLDED else _unquoted(value)
    return fields


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _first_words(text: str) -> str:
    for line in text.split("\n"):
        words = line.strip().lstrip("#").strip()
        if words:
            return words[:200]
    return ""
