"""The language of search queries: words, "a phrase", -without, OR.

All words must be in a message. `a b OR c` is (a and b) or c. A word that the index knows as several ("e-mail", "東京")
is a phrase of them. `parse_query` raises nothing: what cannot be understood is a `problem` in words.
"""

import re
from dataclasses import dataclass
from typing import Final

from sessions_app.core.search.words import words_of

MAX_QUERY_CHARS: Final = 1_000
MAX_TERMS: Final = 32

_TERM: Final = re.compile(r'(?P<minus>-)?"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')

Phrase = tuple[str, ...]
"""Stems that stand next to each other; a single word is a phrase of one."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Required and excluded terms of a query."""

    wanted: tuple[Phrase, ...]
    unwanted: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One of the alternatives must hold. With a `problem` there is none."""

    alternatives: tuple[Alternative, ...] = ()
    problem: str = ""

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """All that is looked for, each once."""
        return tuple(dict.fromkeys(phrase for each in self.alternatives for phrase in each.wanted))


def parse_query(text: str) -> Query:
    """Parse a query as people type it."""
    if len(text) > MAX_QUERY_CHARS:
        return Query(problem=f"A query has at most {MAX_QUERY_CHARS} characters.")
    if text.count('"') % 2:
        return Query(problem="A quotation mark is not closed.")
    groups: list[tuple[list[Phrase], list[Phrase]]] = [([], [])]
    terms = list(_TERM.finditer(text))
    if len(terms) > MAX_TERMS:
        return Query(problem=f"A query has at most {MAX_TERMS} words and phrases.")
    for term in terms:
        if term["word"] == "OR":
            groups.append(([], []))
            continue
        _add(groups[-1], term)
    return _checked(groups)


def _add(group: tuple[list[Phrase], list[Phrase]], term: re.Match[str]) -> None:
    wanted, unwanted = group
    text, is_unwanted = term["phrase"], bool(term["minus"])
    if text is None:
        text = term["word"]
        is_unwanted = text.startswith("-")
    phrase = tuple(word.stem for word in words_of(text))
    if phrase:
        (unwanted if is_unwanted else wanted).append(phrase)


def _checked(groups: list[tuple[list[Phrase], list[Phrase]]]) -> Query:
    if len(groups) == 1 and not any(groups[0]):
        return Query(problem="There is no word to look for.")
    if any(not wanted and not unwanted for wanted, unwanted in groups):
        return Query(problem="OR stands between two words.")
    if any(not wanted for wanted, _ in groups):
        return Query(problem="There must be a word to look for, not only words to leave out.")
    return Query(tuple(Alternative(tuple(wanted), tuple(unwanted)) for wanted, unwanted in groups))
