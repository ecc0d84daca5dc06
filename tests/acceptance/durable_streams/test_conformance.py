"""The published conformance suite of Durable Streams against the product as it is started, on both databases."""

import os
from collections.abc import Callable

import pytest

from tests.acceptance.durable_streams.suite import ENVIRON, failures, run_suite
from tests.acceptance.product import Product

TESTS = 338
DATABASES = ("sqlite", "postgres") if os.environ.get("TEST_DATABASE", "sqlite") == "sqlite" else ("postgres",)


@pytest.mark.smoke
@pytest.mark.timeout(1000)  # thousands of requests one after another: half a minute alone, many on a busy machine
@pytest.mark.parametrize("database", DATABASES)
def test_every_test_of_the_suite_passes(make_product: Callable[..., Product], database: str) -> None:
    product = make_product(database=database, environ=ENVIRON)
    report = run_suite(product.url("").rstrip("/"), product.token("alice"), seconds=900.0)
    assert failures(report) == {}
    assert (report["numPassedTests"], report["numTotalTests"]) == (TESTS, TESTS)
