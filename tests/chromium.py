"""Which Chromium tests use, how it is started, and what happens without one."""

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is installed is taken: the shell does less work than a whole browser."""

FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

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


@contextmanager
def launched() -> Iterator[Browser]:
    """Start one and end it. Meanwhile the driver's loop runs in this thread, so no test can run a loop of its own."""
    path = require_chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()
