"""Fixtures of chaos tests: the same products as the acceptance tests', under a marker of their own."""

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.acceptance.conftest import make_product
from tests.acceptance.product import ROOT
from tests.chromium import MISSING, installed_chromium, is_in_ci
from tests.clients.bundle import served_bundles

__all__ = ["make_product"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a product here is an acceptance test too."""
    for item in items:
        if "tests/chaos/" in Path(item.path).as_posix() and "make_product" in getattr(item, "fixturenames", ()):
            item.add_marker("acceptance")


def find_browser() -> str:
    """Path of a Chromium, with the web page built for it."""
    found = installed_chromium()
    if found is None:
        if is_in_ci():
            pytest.fail(MISSING)
        warnings.warn(f"no browser takes part in the chaos run: {MISSING}", stacklevel=2)
        return ""
    build = subprocess.run([sys.executable, str(ROOT / "static" / "build.py")], cwd=ROOT, check=False, timeout=300)
    assert build.returncode == 0, "the page could not be built"
    return found


@pytest.fixture
def chromium_path() -> str:
    """Path of a Chromium, or nothing."""
    return find_browser()


@pytest.fixture
def clients(chromium_path: str) -> Iterator[str]:
    """Address of the pages with the published clients, or nothing."""
    with served_bundles() if chromium_path else nullcontext("") as address:
        yield address
