"""Patterns of paths: `*`, `?`, `[…]`, `[!…]`, `**`, `{a,b}`, and a backslash before what is meant literally.

A pattern becomes a regular expression of RE2, whose time grows with the length of the path and never with the number
of ways to match: patterns come from models and from files of the workspace.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import re2

from thinkproject.kernel.phrases import Phrase
from tools_app.errors import FileFailed

MAX_PATTERN_CHARS: Final = 4096
MAX_ALTERNATIVES: Final = 1_000
"""Patterns that the braces of one pattern may stand for."""

MAX_EXPANDED_CHARS: Final = 64 * 1024
NEVER: Final = r"[^\x00-\x{10FFFF}]"
"""Matches nothing."""

_CLASSES: Final = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\x00", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}
"""Named classes of characters (`[[:digit:]]`), as ranges."""


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """A compiled pattern. `prefix`: the directory, ending in `/`, below which everything that matches lies.

    `takes_all`: all below it matches. `endings`: with one of these every path that matches ends; none: it is not known.
    """

    pattern: str
    prefix: str
    takes_all: bool = False
    endings: tuple[str, ...] = ()
    _compiled: Any = field(default=None, repr=False, compare=False)

    def matches(self, path: str) -> bool:
        """Whether a whole absolute path matches. Links and kinds of entries do not matter."""
        if self.takes_all and len(path) > len(self.prefix) and path.startswith(self.prefix):
            return True
        if self.endings and not path.endswith(self.endings):
            return False
        return self._compiled.fullmatch(path) is not None


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> GlobPattern:
    """Compile a pattern for absolute paths; one without a leading slash is rooted at `/`.

    `**` as a whole component stands for any number of directories, at the end for everything below; elsewhere it is a
    `*`. No other wildcard matches a slash; every one matches a leading dot. Braces are expanded before anything else,
    as shells do. What is never closed stands for itself. Errors: `FileFailed` (`EINVAL`) for a pattern that is too long
    or whose braces stand for too many.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise _invalid(pattern, Phrase("A pattern has at most {limit} characters.", limit=MAX_PATTERN_CHARS))
    if not is_encodable(pattern):
        raise _invalid("", Phrase("This pattern is no Unicode text."))
    rooted = ["/" + "/".join(_components(each)) for each in expand_braces(pattern)]
    sources = [translate(each, closes_brackets=False) for each in rooted]
    prefix = _common([_literal_directory(each) for each in rooted])
    endings = {_ending(each) for each in rooted}
    return GlobPattern(
        pattern,
        prefix,
        takes_all=any(each in {f"{prefix}**", f"{prefix}**/*"} for each in rooted),
        endings=() if "" in endings else tuple(sorted(endings)),
        _compiled=compile_any(sources),
    )


def containing(text: str) -> str:
    """The pattern of entries whose name has a text somewhere, in either case; a slash in it stands between names."""
    return "/**/*" + "".join(char if char == "/" else _either_case(char) for char in text) + "*"


def _either_case(char: str) -> str:
    both = sorted({char, *(each for each in (char.lower(), char.upper()) if len(each) == 1)})
    literal = "".join(f"\\{each}" for each in both)
    return literal if len(both) == 1 else f"[{literal}]"


def expand_braces(pattern: str) -> list[str]:
    """The patterns that a pattern with braces stands for, in order. Errors: as `compile_glob`."""
    done: list[str] = []
    waiting = [(pattern, 0)]
    chars = 0
    while waiting:
        text, start = waiting.pop()
        found = _first_group(text, start)
        if found is None:
            done.append(text)
            chars += len(text)
        else:
            opening, parts, end = found
            waiting += [(text[:opening] + part + text[end:], opening) for part in reversed(parts)]
        if len(done) + len(waiting) > MAX_ALTERNATIVES or chars > MAX_EXPANDED_CHARS:
            raise _invalid(pattern, Phrase("The braces of this pattern stand for too many patterns."))
    return done


def translate(pattern: str, *, closes_brackets: bool) -> str:
    """The regular expression of a pattern without braces, for a whole path.

    `closes_brackets`: whether a bracket that is never closed makes the pattern match nothing, as git has it; else it
    stands for itself.
    """
    made: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            end = at + len(pattern[at:]) - len(pattern[at:].lstrip("*"))
            piece, at = _stars(pattern, at, end)
        elif char == "?":
            piece, at = "[^/]", at + 1
        elif char == "\\":
            if at + 1 == len(pattern):
                return NEVER
            piece, at = re2.escape(pattern[at + 1]), at + 2
        elif char == "[":
            closed = _bracket(pattern, at)
            if closed is None and closes_brackets:
                return NEVER
            piece, at = closed or (r"\[", at + 1)
        else:
            piece, at = re2.escape(char), at + 1
        made.append(piece)
    return "".join(made)


def compile_any(sources: Sequence[str], *, max_bytes: int = 8 << 20) -> Any:
    """Compile regular expressions so that a text matches if one of them does. Errors: `FileFailed` (`EINVAL`).

    `max_bytes`: of memory; with little of it a match takes longer.
    """
    options = re2.Options()
    options.max_mem = max_bytes
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = True
    try:
        return re2.compile("|".join(f"(?:{source})" for source in sources), options)
    except re2.error as error:
        raise FileFailed("This pattern is too large.", errno="EINVAL", path="") from error


def is_encodable(text: str) -> bool:
    """Whether a text is Unicode throughout: JSON can carry halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stars(pattern: str, at: int, end: int) -> tuple[str, int]:
    """One or more stars, and the slash after them where they stand for directories."""
    is_component = (at == 0 or pattern[at - 1] == "/") and (end == len(pattern) or pattern[end] == "/")
    if end - at == 1 or not is_component:
        return "[^/]*", end
    return (".+", end) if end == len(pattern) else ("(?:.+/)?", end + 1)


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """A set of characters from its opening bracket, and where it ends; `None` if it is not closed."""
    at += 1
    is_negated = pattern[at : at + 1] in {"!", "^"}
    at += is_negated
    first = at
    ranges: list[tuple[str, str]] = []
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        named = re.compile(r"\[:([a-z]*):\]").match(pattern, at)
        if named:
            if named[1] not in _CLASSES:
                return None
            ranges += _CLASSES[named[1]]
            at = named.end()
            continue
        low, at = _member(pattern, at)
        high = low
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in {"", "]"}:
            high, at = _member(pattern, at + 1)
        ranges.append((low, max(low, high)))  # a range that runs backwards is its first character, as git has it
    if at >= len(pattern):
        return None
    return _class_of(ranges, is_negated=is_negated), at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    at += pattern[at] == "\\" and at + 1 < len(pattern)
    return pattern[at], at + 1


def _class_of(ranges: list[tuple[str, str]], *, is_negated: bool) -> str:
    """A class of RE2 without the slash, which no set matches."""
    if is_negated:
        return f"[^/{''.join(_range(*each) for each in ranges)}]"
    without = [part for low, high in ranges for part in _without_slash(low, high) if part[0] <= part[1]]
    return f"[{''.join(_range(*part) for part in without)}]" if without else NEVER


def _without_slash(low: str, high: str) -> list[tuple[str, str]]:
    return [(low, "."), ("0", high)] if low <= "/" <= high else [(low, high)]


def _range(low: str, high: str) -> str:
    return rf"\x{{{ord(low):x}}}-\x{{{ord(high):x}}}"


def _components(pattern: str) -> list[str]:
    """The components without those that change nothing."""
    return [part for part in pattern.split("/") if part not in {"", "."}]


def _literal_directory(rooted: str) -> str:
    """The directories that a pattern begins with and that have no wildcard."""
    literal = "/"
    for part in rooted[1:].split("/")[:-1]:
        if any(char in part for char in "*?[\\"):
            break
        literal += part + "/"
    return literal


def _ending(rooted: str) -> str:
    """The characters behind the last one that may mean something."""
    return rooted[max(rooted.rfind(char) for char in "*?[]\\") + 1 :]


def _common(directories: Sequence[str]) -> str:
    """The longest directory that contains them all."""
    shortest, longest = min(directories), max(directories)
    same = next((at for at, pair in enumerate(zip(shortest, longest, strict=False)) if pair[0] != pair[1]), None)
    common = shortest if same is None else shortest[:same]
    return common[: common.rindex("/") + 1]


def _first_group(text: str, start: int) -> tuple[int, list[str], int] | None:
    """The first closed pair of braces with a comma: where it opens, its parts, where it ends."""
    open_groups: list[list[int]] = []  # each: where it opens, then its commas
    found: list[int] = []
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "{":
            open_groups.append([at])
        elif char == "," and open_groups:
            open_groups[-1].append(at)
        elif char == "}" and open_groups:
            group = open_groups.pop()
            if len(group) > 1 and (not found or group[0] < found[0]):
                found = [*group, at]
        at += 1
    if not found:
        return None
    return found[0], [text[begin + 1 : end] for begin, end in pairwise(found)], found[-1] + 1


def _invalid(pattern: str, message: Phrase) -> FileFailed:
    return FileFailed(message, errno="EINVAL", path=pattern[:100])
