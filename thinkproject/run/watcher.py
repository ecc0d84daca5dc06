"""Notices edits of Python files and templates, for the reload of `make run`."""

from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from watchfiles import Change, watch

SUFFIXES = (".py", ".html")
_NO_CODE = {"__pycache__", "node_modules", "var", "docs", "static", "staticfiles"}
_MADE = {"dist", "build"}  # by builds, which may run beside: their pages are files to serve, no templates
_NOT_RUN = {"tests", "bench"}
SKIPPED = _NO_CODE | _MADE | _NOT_RUN
SETTLE_MS = 300
_MOMENT_MS = 1
_MOST_MS = 3_000

_Changes: TypeAlias = Generator[set[tuple[Change, str]], None, None]


class Watcher:
    """Reports the files that changed, once they have been quiet for a moment. Errors: `OSError` without inotify.

    A folder is watched without what it has below, and each of its sub-folders that holds code is watched whole: the
    data directory and the environment, which change all the time, cost nothing.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = list(folders)
        self._watches: list[_Changes] = []
        self._open()

    def poll(self) -> set[str]:
        """Return the paths that changed since the last call; waits a moment where some are changing now."""
        changes = [change for found in self._watches for change in next(found)]
        if any(kind is Change.added and Path(path).is_dir() for kind, path in changes):
            self._open()  # a new package: what is in it is watched from now on
        return {path for _, path in changes}

    def close(self) -> None:
        """Stop watching."""
        for found in self._watches:
            with closing(found):
                pass
        self._watches = []

    def _open(self) -> None:
        self.close()
        below = [child for folder in self.folders for child in folder.iterdir() if _holds_code(child)]
        self._watches = [self._watch(self.folders, recursive=False), self._watch(below, recursive=True)]
        for found in self._watches:
            next(found)  # begins to watch

    def _watch(self, paths: list[Path], *, recursive: bool) -> _Changes:
        return watch(
            *paths,
            watch_filter=self._is_code,
            debounce=_MOST_MS,
            step=SETTLE_MS,
            rust_timeout=_MOMENT_MS,
            yield_on_timeout=True,
            recursive=recursive,
        )

    def _is_code(self, change: Change, path: str) -> bool:
        found = Path(path)
        inside = next((found.relative_to(folder).parts for folder in self.folders if found.is_relative_to(folder)), ())
        if any(map(_is_skipped, inside)):
            return False
        return found.suffix in SUFFIXES or (change is Change.added and found.is_dir())


def _holds_code(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not _is_skipped(path.name)


def _is_skipped(name: str) -> bool:
    """Hidden folders have no code: environments, and caches of pytest, ruff and mypy that are made meanwhile."""
    return name in SKIPPED or name.startswith(".")
