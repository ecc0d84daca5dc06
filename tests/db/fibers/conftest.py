"""New fibers are not dispatched: these tests run them themselves."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _manual_dispatch(settings: Any) -> None:
    settings.THINK_FIBER_DISPATCH = "manual"
