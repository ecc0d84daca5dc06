"""The results of a search, as every provider's answer is read: texts without markup, within limits. Pure."""

import html
import re
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONValue

MAX_TITLE: Final = 200
MAX_TEXT: Final = 600
MAX_URL: Final = 2_000
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,200}>")


class Unanswered(Exception):
    """A service answered, and had nothing to look in. Its argument: a sentence with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One page that was found. `published`: as the provider writes it, or empty."""

    url: str
    title: str
    text: str
    published: str = ""


def read_results(entries: JSONValue, *, text: str, published: str = "") -> list[SearchResult]:
    """The results in a list of objects with `url` and `title`, each address once; what is no result is left out.

    `text`, `published`: the names of the fields for them.
    """
    found: dict[str, SearchResult] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (url := _address(entry.get("url"))):
            result = SearchResult(
                url=url,
                title=plain(entry.get("title"), MAX_TITLE) or url,
                text=plain(entry.get(text), MAX_TEXT),
                published=plain(entry.get(published), 40),
            )
            found.setdefault(url, result)
    return list(found.values())


def plain(value: JSONValue, max_chars: int) -> str:
    """A text of one line, without tags and entities, cut at a limit; empty for what is no text."""
    if not isinstance(value, str):
        return ""
    text = " ".join(html.unescape(_TAG.sub("", value[: 20 * max_chars])).replace("\x00", "").split())
    return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"


def _address(value: JSONValue) -> str:
    is_address = isinstance(value, str) and len(value) <= MAX_URL and value.startswith(("http://", "https://"))
    return str(value) if is_address and not any(char.isspace() for char in str(value)) else ""
