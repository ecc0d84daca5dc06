"""A workspace in memory."""

import pytest

from tools_app.workspace.stores.memory import MemoryWorkspace


@pytest.fixture
def workspace() -> MemoryWorkspace:
    return MemoryWorkspace()
