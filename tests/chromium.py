"""Which Chromium tests use, and what happens without one."""

import os
import shutil
import warnings
from typing import Final

import pytest

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is installed is taken: the shell does less work than a whole browser."""

MISSING: Final = "no Chromium: install one (Debian: apt-get install chromium) or set CHROMIUM"


def installed_chromium() -> str | None:
    """Path of the one that `CHROMIUM` names, or of the first that is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def is_in_ci() -> bool:
    """Whether a missing browser is a failure."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def require_chromium() -> str:
    """Path of a Chromium. Without one the test is skipped with a warning, and fails in CI."""
    if found := installed_chromium():
        return found
    if is_in_ci():
        pytest.fail(MISSING)
    warnings.warn(MISSING, stacklevel=2)
    pytest.skip(MISSING)
