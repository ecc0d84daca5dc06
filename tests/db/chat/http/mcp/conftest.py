"""The assistant, offered to programs."""

import pytest

from chat.agents import Assistant


@pytest.fixture(autouse=True)
def _offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "mcp_server", ("current_time", "read"))
