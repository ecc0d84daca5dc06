"""Things found by words of their names and descriptions: functions of code, and tools that are not declared."""

import re
from collections.abc import Sequence

from sessions_app.core.search.stemming import stem


def ranked(query: str, things: Sequence[tuple[str, str]]) -> list[int]:
    """Places of the things (name, description) that have words of the query, best first; by name where they tie.

    Words of English are the same in all their forms: "issues" finds `create_issue`.
    """
    said = _said(query)
    words = {stem(word) for word in said}
    literal = {word for word in (*said, *words) if len(word) > 2}
    scores = [_score(name, description, words, literal) for name, description in things]
    found = [place for place, score in enumerate(scores) if score]
    return sorted(found, key=lambda place: (-scores[place], things[place][0]))


def _score(name: str, description: str, words: set[str], literal: set[str]) -> int:
    in_name, in_text = set(_words(name)), set(_words(description))
    found = 3 * len(words & in_name) + len(words & in_text)
    return found + sum(1 for word in literal if word in name.lower())


def _words(text: str) -> list[str]:
    return [stem(word) for word in _said(text)]


def _said(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[0-9]+|[^\W\d_a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
