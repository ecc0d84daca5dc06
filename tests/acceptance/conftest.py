"""Fixtures of acceptance tests: the product as real processes in a folder of its own."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.product import Plan, Product, start_product


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts real processes."""
    for item in items:
        if "tests/acceptance/" in Path(item.path).as_posix():
            item.add_marker("acceptance")


@pytest.fixture
def make_product() -> Iterator[Callable[..., Product]]:
    """Start products: `make_product(webs=2, workers=2, is_proxied=True, database="postgres")`."""
    with products() as make:
        yield make


@pytest.fixture(scope="session")
def _kept_product() -> Iterator[Product]:
    with products() as make:
        yield make()


@pytest.fixture
def shared_product(_kept_product: Product) -> Product:
    """One product for all tests with conversations (or people) of their own: starting one takes seconds.

    Whatever a test killed runs again.
    """
    _kept_product.revive()
    return _kept_product


@contextlib.contextmanager
def products() -> Iterator[Callable[..., Product]]:
    """Something that starts products, which end with the block."""
    running: list[tuple[Product, Path]] = []

    def make(*, database: str = os.environ.get("TEST_DATABASE", "sqlite"), **options: object) -> Product:
        folder = Path(tempfile.mkdtemp(prefix="thka"))
        product = start_product(folder, Plan(database=database, **options))  # type: ignore[arg-type]  # named in Plan
        running.append((product, folder))
        return product

    try:
        yield make
    finally:
        for product, folder in running:
            product.close()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_product(make_product: Callable[..., Product]) -> Product:
    """One web server, one worker, the scripted provider, Redis."""
    return make_product()
