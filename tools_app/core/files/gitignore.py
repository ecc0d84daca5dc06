"""The rules of `.gitignore` files, as git applies them.

A directory that is ignored hides everything below it, whatever else the rules say. Otherwise the last matching line
of the nearest file decides. Time is linear in the length of the paths (`globs`), and in that of the rules, of which
there are only so many in all files together: those of the files that were added first.
"""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from tools_app.core.files.globs import compile_any, is_encodable, translate
from tools_app.errors import FileFailed

FILE_NAME: Final = ".gitignore"
MAX_RULES: Final = 2_000
MAX_CHARS: Final = 100_000
"""Of the rules of all files together, comments not counted."""
MAX_LINE_CHARS: Final = 4_096
RULE_BYTES: Final = 32 * 1024
RULE_BYTES_A_CHAR: Final = 256
"""Memory of one rule, and more for its length."""
CHECKED_RULES: Final = 50
MAX_REMEMBERED: Final = 100_000
"""Directories whose answer is kept."""


@dataclass(frozen=True)
class _Rule:
    source: str
    is_negated: bool
    for_directories: bool
    for_names: bool  # matches the last component; else the path below the file's directory

    @cached_property
    def compiled(self) -> Any:
        """The expression by itself, which is needed only where the quick test of its file finds a match."""
        try:
            return compile_any([self.source], max_bytes=RULE_BYTES + RULE_BYTES_A_CHAR * len(self.source))
        except FileFailed:
            return compile_any([self.source])

    @property
    def is_possible(self) -> bool:
        """Whether it can be compiled."""
        try:
            return self.compiled is not None
        except FileFailed:
            return False


@dataclass(frozen=True, slots=True)
class _File:
    """The rules of one file, last line first, and a quick test whether any of them matches at all."""

    rules: tuple[_Rule, ...]
    any_name: Any = field(repr=False)
    any_path: Any = field(repr=False)

    def decide(self, relative: str, *, is_directory: bool, check: Callable[[], None]) -> bool | None:
        """Whether the path is ignored; `None` if no line matches it."""
        check()
        name = posixpath.basename(relative)
        name_hit = self.any_name.fullmatch(name) is not None
        if not name_hit and self.any_path.fullmatch(relative) is None:
            return None
        for number, rule in enumerate(self.rules):
            if not number % CHECKED_RULES:
                check()
            if rule.for_directories and not is_directory:
                continue
            if rule.compiled.fullmatch(name if rule.for_names else relative) is not None:
                return not rule.is_negated
        return None


class IgnoreRules:
    """The rules of any number of files. Values do not change: `with_file` returns another one.

    `check`: called again and again while something is looked at; what it raises ends that.
    """

    def __init__(self, files: Mapping[str, _File], check: Callable[[], None]) -> None:
        self._files = files
        self._check = check
        self._directories: dict[str, bool] = {}

    @classmethod
    def empty(cls, check: Callable[[], None] = lambda: None) -> "IgnoreRules":
        """Rules that ignore nothing."""
        return cls({}, check)

    def with_file(self, directory: str, text: str) -> "IgnoreRules":
        """Add the file of a directory, given by its absolute path. Left out is what matches nothing, or is too much."""
        self._check()
        have = [rule for file in self._files.values() for rule in file.rules]
        room = MAX_RULES - len(have), MAX_CHARS - sum(len(rule.source) for rule in have)
        return IgnoreRules({**self._files, directory.rstrip("/") + "/": _parse(text, *room)}, self._check)

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Whether an absolute path is ignored, itself or with a directory above it."""
        if not self._files:
            return False
        parent = posixpath.dirname(path)
        return (parent != "/" and self._hides(parent)) or self._decides(path, is_directory=is_directory)

    def _hides(self, directory: str) -> bool:
        """Whether a directory is ignored, from the top down."""
        known = self._directories.get(directory)
        if known is None:
            parent = posixpath.dirname(directory)
            known = (parent != "/" and self._hides(parent)) or self._decides(directory, is_directory=True)
            if len(self._directories) >= MAX_REMEMBERED:
                self._directories.clear()
            self._directories[directory] = known
        return known

    def _decides(self, path: str, *, is_directory: bool) -> bool:
        """The answer of the nearest file with a matching line."""
        end = len(path)
        while (end := path.rfind("/", 0, end)) >= 0:
            file = self._files.get(path[: end + 1])
            if file is not None:
                decided = file.decide(path[end + 1 :], is_directory=is_directory, check=self._check)
                if decided is not None:
                    return decided
        return False


def _parse(text: str, most: int, most_chars: int) -> _File:
    rules: list[_Rule] = []
    for line in text.removeprefix("\ufeff").split("\n"):
        rule = _parse_line(line.removesuffix("\r")) if len(line) <= MAX_LINE_CHARS else None
        if rule is not None:
            most_chars -= len(rule.source)
            if len(rules) == most or most_chars < 0:
                break
            rules.append(rule)
    names, any_name = _tested([rule for rule in rules if rule.for_names])
    paths, any_path = _tested([rule for rule in rules if not rule.for_names])
    kept = {id(rule) for rule in (*names, *paths)}
    return _File(tuple(rule for rule in reversed(rules) if id(rule) in kept), any_name, any_path)


def _parse_line(line: str) -> _Rule | None:
    if line.startswith("#") or not is_encodable(line):
        return None
    pattern = _without_trailing_spaces(line)
    is_negated = pattern.startswith("!")
    pattern = pattern[is_negated:]
    for_directories = pattern.endswith("/")
    pattern = pattern[: len(pattern) - for_directories]
    for_names = "/" not in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    source = translate(pattern, closes_brackets=True)
    return _Rule(source, is_negated, for_directories, for_names)


def _tested(rules: list[_Rule]) -> tuple[list[_Rule], Any]:
    """The rules that can be compiled, and a quick test whether any matches: where it is too large, each is tried."""
    try:
        return rules, compile_any([rule.source for rule in rules] or [r"\z."])
    except FileFailed:
        return [rule for rule in rules if rule.is_possible], compile_any([".*"])


def _without_trailing_spaces(line: str) -> str:
    """The line without the spaces at its end; one after a backslash stays."""
    kept = line.rstrip(" ")
    slashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if slashes % 2 and kept != line else kept
