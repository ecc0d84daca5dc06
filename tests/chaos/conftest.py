"""Fixtures of chaos tests: the same products as the acceptance tests', under a marker of their own."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.conftest import make_product
from tests.acceptance.product import ROOT
from tests.chromium import installed_chromium
from tests.clients.bundle import BundleFailed, served_bundles

__all__ = ["make_product"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a product here is an acceptance test too."""
    for item in items:
        if "tests/chaos/" in Path(item.path).as_posix() and "make_product" in getattr(item, "fixturenames", ()):
            item.add_marker("acceptance")


def do_without(what: str) -> None:
    """Go on without browsers: a failure in CI, and loud elsewhere."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(what)
    warnings.warn(what, stacklevel=2)


def find_browser() -> str:
    """Path of a Chromium, with the web page built for it."""
    found = installed_chromium()
    if found is None:
        do_without("NO CHROMIUM: no browsers took part in the chaos run. Install one or set CHROMIUM.")
        return ""
    build = subprocess.run([sys.executable, str(ROOT / "static" / "build.py")], cwd=ROOT, check=False, timeout=300)
    assert build.returncode == 0, "the page could not be built"
    return found


@pytest.fixture
def browser() -> str:
    """Path of a Chromium, or nothing."""
    return find_browser()


@pytest.fixture
def clients(browser: str) -> Iterator[str]:
    """Address of the pages with the published clients, or nothing."""
    with ExitStack() as stack:
        address = ""
        if browser:
            try:
                address = stack.enter_context(served_bundles())
            except BundleFailed as error:
                do_without(f"NO PUBLISHED CLIENTS took part in the chaos run: {error}")
        yield address
