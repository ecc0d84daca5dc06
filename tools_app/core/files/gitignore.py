"""Rules of `.gitignore` files. Pure."""

import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """Rules of several files, each for the directory that it is in."""

    rules: tuple[tuple[str, str], ...] = ()

    @classmethod
    def empty(cls) -> "IgnoreRules":
        """No rules."""
        return cls()

    def with_file(self, directory: str, text: str) -> "IgnoreRules":
        """These rules and those of one more file."""
        lines = [line.strip() for line in text.splitlines()]
        added = tuple((directory, line) for line in lines if line and not line.startswith("#"))
        return IgnoreRules(self.rules + added)

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Whether the last rule that matches a path excludes it."""
        found = False
        for directory, rule in self.rules:
            root = directory.rstrip("/") + "/"
            pattern = rule.removeprefix("!")
            if not path.startswith(root) or (pattern.endswith("/") and not is_directory):
                continue
            pattern = pattern.rstrip("/")
            relative = path[len(root) :]
            subject = relative if "/" in pattern else relative.rsplit("/", 1)[-1]
            if fnmatch.fnmatchcase(subject, pattern.removeprefix("/")):
                found = not rule.startswith("!")
        return found
