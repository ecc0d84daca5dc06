"""Folders that lie deeper than paths reach and than Python recurses."""

import os
from pathlib import Path
from typing import Final

LEVELS: Final = 1_900
NAME: Final = "deep"


def deep_folder(top: Path, data: bytes) -> None:
    """Make a folder with 1,900 folders within each other, and a file with this content in the innermost."""
    top.mkdir()
    handle = os.open(top, os.O_RDONLY)
    for _ in range(LEVELS):
        os.mkdir(NAME, dir_fd=handle)
        onward = os.open(NAME, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = onward
    file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=handle)
    os.write(file, data)
    os.close(file)
    os.close(handle)
