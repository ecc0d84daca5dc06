"""Folders of tests that other users may read: walls are shown to hold where nothing else would keep a file."""

import tempfile
from pathlib import Path


def open_to_all(path: Path) -> None:
    """Let every user read a file of a test, and enter the folders that lead to it."""
    top = Path(tempfile.gettempdir())
    for each in (path, *path.parents):
        if each == top or top not in each.parents:
            return
        each.chmod(0o755)
