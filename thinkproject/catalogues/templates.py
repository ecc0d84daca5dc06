"""Sentences in templates: those of `{% translate %}` and `{% blocktranslate %}`, and text that stands beside them."""

import ast
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from django.utils.translation.template import templatize

from thinkproject.catalogues.entries import Entry, Loose, relative

ALLOWED = frozenset({"Think"})
"""Names, which are the same in every language."""
READ_OUT = frozenset({"title", "alt", "placeholder", "label", "aria-label", "aria-description", "aria-roledescription"})
"""Attributes that people see or hear."""

_CODE = frozenset({"script", "style", "code", "kbd", "template"})
_STRING = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CALL = re.compile(rf"\b(n?p?gettext|_)\(((?:\s*{_STRING}\s*,?)+)")
_TRANSLATED = re.compile(r"\{% *blocktrans(?:late)?\b.*?\{% *endblocktrans(?:late)? *%\}", re.DOTALL)
_COMMENT = re.compile(r"\{#.*?#\}|\{% *comment\b.*?\{% *endcomment *%\}", re.DOTALL)
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_WORDS_OF_FILTERS = re.compile(
    r"""\|\s*(?:pluralize|(?:default|default_if_none|yesno|add|join)\s*:\s*(?!_\()["'][^"']*[^\W\d_])"""
)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_ATTRIBUTES = re.compile(rf"(?:{_ATTRIBUTE.pattern}\s*)+")
_LETTER = re.compile(r"[^\W\d_]")


def entries_of(path: Path) -> Iterator[Entry]:
    """The sentences of a template."""
    place = relative(path)
    for name, listed in _CALL.findall(templatize(path.read_text(encoding="utf-8"), origin=place)):
        words = [ast.literal_eval(word) for word in re.findall(_STRING, listed)]
        context = words.pop(0) if "pgettext" in name else ""
        yield Entry(text=words[0], plural=words[1] if "ngettext" in name else "", context=context, place=place)


def loose_of(path: Path) -> Iterator[Loose]:
    """Text of a template that is in no catalogue: text nodes, attributes that are read out, words in filters."""
    place = relative(path)
    for line, text in find_loose(path.read_text(encoding="utf-8")):
        yield Loose(place=f"{place}:{line}", text=f"text outside of translate: {text!r:.80}")


def find_loose(source: str) -> list[tuple[int, str]]:
    """Such text of a template's source, each with its line."""
    source = _COMMENT.sub(_blank, source)
    source = _TRANSLATED.sub(_blank, source)
    found = [(source.count("\n", 0, match.start()) + 1, match.group()) for match in _WORDS_OF_FILTERS.finditer(source)]
    reader = _Reader()
    reader.feed(_TAG.sub(_blank, source))
    reader.close()
    return sorted([*found, *reader.found])


def _blank(match: re.Match[str]) -> str:
    """Nothing, in as many lines."""
    return "\n" * match.group().count("\n")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, str]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        if tag in _CODE:
            self._open.append(tag)
        fields = {name: value or "" for name, value in attrs}
        seen = {name for name in fields if name in READ_OUT}
        if tag == "input" and fields.get("type") in {"submit", "button", "reset"}:
            seen.add("value")
        for name in sorted(seen):
            self._add(fields[name])

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            return
        if _ATTRIBUTES.fullmatch(data.strip()):  # a block within a tag
            self.handle_starttag("", _ATTRIBUTE.findall(data))
        else:
            self._add(data)

    def _add(self, text: str) -> None:
        words = " ".join(text.split())
        if _LETTER.search(words) and words.strip(" ·") not in ALLOWED:
            self.found.append((self.getpos()[0], words))
