"""Notices edits of Python files and templates, for the reload of `make run`. It polls: a few hundred files."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = (".py", ".html")
_NO_CODE = {"__pycache__", ".git", ".venv", "node_modules", "var", "docs", "static", "staticfiles"}
_MADE = {"dist", "build"}  # by builds, which may run beside: their pages are files to serve, no templates
_NOT_RUN = {"tests", "bench"}
SKIPPED = _NO_CODE | _MADE | _NOT_RUN
SETTLE_SECONDS = 0.3


class Watcher:
    """Compares modification times; reports once the files have been quiet for a moment."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = list(folders)
        self.known = self._scan()
        self.changed_at: float | None = None
        self.changed: set[str] = set()

    def poll(self) -> set[str]:
        """Return the files that changed, when nothing has changed for a moment; else nothing."""
        now = self._scan()
        changed = {path for path in self.known.keys() | now.keys() if self.known.get(path) != now.get(path)}
        self.known = now
        if changed:
            self.changed |= changed
            self.changed_at = time.monotonic()
            return set()
        if self.changed_at is None or time.monotonic() - self.changed_at < SETTLE_SECONDS:
            return set()
        ready, self.changed, self.changed_at = self.changed, set(), None
        return ready

    def _scan(self) -> dict[str, tuple[int, int]]:
        return {path: mark for folder in self.folders for path, mark in _files(str(folder))}


def _files(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED:
                    yield from _files(entry.path)
            elif entry.name.endswith(SUFFIXES):
                found = entry.stat()
                yield entry.path, (found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            continue
