"""Which Chromium tests use."""

import os
import shutil
from typing import Final

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is installed is taken: the shell does less work than a whole browser."""


def installed_chromium() -> str | None:
    """Path of the one that `CHROMIUM` names, or of the first that is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
