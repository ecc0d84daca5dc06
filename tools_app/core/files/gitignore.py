"""The rules of `.gitignore` files, as git applies them.

A directory that is ignored hides everything below it, whatever else the rules say. Otherwise the last matching line
of the nearest file decides. Time is linear in the length of the paths (`globs`).
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tools_app.core.files.globs import compile_any, is_encodable, translate
from tools_app.errors import FileFailed

FILE_NAME: Final = ".gitignore"
MAX_LINES: Final = 5_000
MAX_LINE_CHARS: Final = 4_096
MAX_REMEMBERED: Final = 100_000
"""Directories whose answer is kept."""


@dataclass(frozen=True, slots=True)
class _Rule:
    compiled: Any = field(repr=False)
    is_negated: bool
    for_directories: bool
    for_names: bool  # matches the last component; else the path below the file's directory


@dataclass(frozen=True, slots=True)
class _File:
    """The rules of one file, last line first, and a quick test whether any of them matches at all."""

    rules: tuple[_Rule, ...]
    any_name: Any = field(repr=False)
    any_path: Any = field(repr=False)

    def decide(self, relative: str, *, is_directory: bool) -> bool | None:
        """Whether the path is ignored; `None` if no line matches it."""
        name = posixpath.basename(relative)
        name_hit = self.any_name.fullmatch(name) is not None
        if not name_hit and self.any_path.fullmatch(relative) is None:
            return None
        for rule in self.rules:
            if rule.for_directories and not is_directory:
                continue
            if rule.compiled.fullmatch(name if rule.for_names else relative) is not None:
                return not rule.is_negated
        return None


class IgnoreRules:
    """The rules of any number of files. Values do not change: `with_file` returns another one."""

    def __init__(self, files: Mapping[str, _File]) -> None:
        self._files = files
        self._directories: dict[str, bool] = {}

    @classmethod
    def empty(cls) -> "IgnoreRules":
        """Rules that ignore nothing."""
        return cls({})

    def with_file(self, directory: str, text: str) -> "IgnoreRules":
        """Add the file of a directory, given by its absolute path. Lines that match nothing are left out."""
        return IgnoreRules({**self._files, directory.rstrip("/") + "/": _parse(text)})

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
                decided = file.decide(path[end + 1 :], is_directory=is_directory)
                if decided is not None:
                    return decided
        return False


def _parse(text: str) -> _File:
    names: list[str] = []
    paths: list[str] = []
    rules: list[_Rule] = []
    for line in text.removeprefix("\ufeff").split("\n")[:MAX_LINES]:
        parsed = _parse_line(line.removesuffix("\r")) if len(line) <= MAX_LINE_CHARS else None
        if parsed is not None:
            source, rule = parsed
            rules.append(rule)
            (names if rule.for_names else paths).append(source)
    return _File(tuple(reversed(rules)), _prefilter(names), _prefilter(paths))


def _parse_line(line: str) -> tuple[str, _Rule] | None:
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
    try:
        return source, _Rule(compile_any([source]), is_negated, for_directories, for_names)
    except FileFailed:
        return None


def _prefilter(sources: list[str]) -> Any:
    """All of them as one; where that is too large, an expression that matches everything, so each is tried."""
    try:
        return compile_any(sources) if sources else compile_any([r"\z."])
    except FileFailed:
        return compile_any([".*"])


def _without_trailing_spaces(line: str) -> str:
    """The line without the spaces at its end; one after a backslash stays."""
    kept = line.rstrip(" ")
    slashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if slashes % 2 and kept != line else kept
