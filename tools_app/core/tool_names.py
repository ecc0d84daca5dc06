"""Names of tools: chosen by patterns, repaired when a model writes another case, and near ones for a name that is none.

A pattern is a name with `*`, `?` and `[…]`; one that begins with `!` takes away. The last pattern that matches a name
decides about it. A list that begins with a negation starts from everything, any other from nothing. A pattern may name
a source before a colon (`mcp:*`, `!extensions:math_*`), and then speaks of its tools alone.

A list that limits what is there speaks of all names. One that grants something speaks of the class's own tools, unless
it names a source: others choose the names of theirs.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from tools_app.core.source import OF_OTHERS, Source
from tools_app.errors import ToolDeclarationInvalid

NOT: Final = "!"
OF: Final = ":"
MAX_LISTED: Final = 40
"""A message to a model lists this many names at most."""

_TRIMMINGS: Final = re.compile(r"^(?:functions?|default_api|tools?)[.:/]|<\|.*|:\d+$", re.DOTALL)
"""Prefixes and marks of templates that models write into the name of a call."""

_NEAR: Final = 0.6  # share of letters that two names must have in common


def selects(patterns: Sequence[str], name: str, source: Source = Source.AGENT) -> bool:
    """Whether a list of patterns that limits keeps a tool."""
    is_kept = bool(patterns) and patterns[0].startswith(NOT)
    for pattern in patterns:
        if _matches(pattern, name, source):
            is_kept = not pattern.startswith(NOT)
    return is_kept


def grants(patterns: Sequence[str], name: str, source: Source) -> bool:
    """Whether a list of patterns that grants something grants it to a tool."""
    if source not in OF_OTHERS:
        return selects(patterns, name, source)
    matching = [each for each in patterns if _matches(each, name, source) and (OF in each or each.startswith(NOT))]
    return bool(matching) and not matching[-1].startswith(NOT)


def names_source(patterns: Sequence[str], source: Source) -> bool:
    """Whether a list of patterns may grant something to tools of this source by its name."""
    return any(pattern.startswith(f"{source}{OF}") for pattern in patterns)


def excludes(patterns: Sequence[str], name: str, source: Source = Source.AGENT) -> bool:
    """Whether a list of patterns takes a tool away by name: its last match is a negation."""
    matching = [pattern for pattern in patterns if _matches(pattern, name, source)]
    return bool(matching) and matching[-1].startswith(NOT)


def _matches(pattern: str, name: str, source: Source) -> bool:
    head, colon, rest = pattern.removeprefix(NOT).partition(OF)
    return fnmatchcase(name, rest) and head == source if colon else fnmatchcase(name, head)


def check_patterns(given: object) -> tuple[str, ...]:
    """A developer's patterns. Errors: `ToolDeclarationInvalid` for one text alone, what is no text, no such source."""
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    patterns: tuple[object, ...] = tuple(given) if is_list and isinstance(given, Iterable) else ("",)
    found = tuple(pattern for pattern in patterns if isinstance(pattern, str) and pattern.removeprefix(NOT))
    if len(found) < len(patterns):
        raise ToolDeclarationInvalid(f"Patterns of tools are a list of names like 'read*' and '!bash', not {given!r}.")
    for pattern in found:
        source, colon, name = pattern.removeprefix(NOT).partition(OF)
        if colon and not (name and source in set(Source)):
            known = ", ".join(Source)
            raise ToolDeclarationInvalid(f"{pattern!r} is no pattern 'source:name'. Sources of tools: {known}.")
    return found


def repaired(name: str, known: Collection[str]) -> str:
    """The tool that a model meant: the name itself, or the only one that differs in case and trimmings."""
    if name in known:
        return name
    folded = _TRIMMINGS.sub("", name.strip()).casefold()
    found = [candidate for candidate in known if candidate.casefold() == folded]
    return found[0] if len(found) == 1 else name


def near(name: str, known: Collection[str]) -> list[str]:
    """Up to three names that resemble this one, the most similar first; case counts for nothing."""
    folded = {candidate.casefold(): candidate for candidate in known}
    wanted = name.casefold()
    close = get_close_matches(wanted, folded, n=3, cutoff=_NEAR)
    parts = [key for key in folded if len(wanted) > 2 and (wanted in key or (len(key) > 2 and key in wanted))]
    return [folded[key] for key in dict.fromkeys([*close, *parts])][:3]


def unknown_tool_text(name: str, known: Collection[str]) -> str:
    """The answer to a name that is no tool's: near names, and the tools that there are."""
    if not known:
        return f"There is no tool {name!r}, and no tools are available. Answer without calling one."
    similar = " or ".join(repr(candidate) for candidate in near(name, known))
    hint = f" Did you mean {similar}?" if similar else ""
    names = list(known)
    listed = ", ".join(repr(candidate) for candidate in names[:MAX_LISTED])
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"There is no tool {name!r}.{hint} Available tools: {listed}{more}."
