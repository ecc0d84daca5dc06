"""Fixtures of chaos tests: the same products as the acceptance tests', under a marker of their own."""

from pathlib import Path

import pytest

from tests.acceptance.conftest import make_product, new_postgres

__all__ = ["make_product", "new_postgres"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a product here is an acceptance test too."""
    for item in items:
        if "tests/chaos/" in Path(item.path).as_posix() and "make_product" in getattr(item, "fixturenames", ()):
            item.add_marker("acceptance")
