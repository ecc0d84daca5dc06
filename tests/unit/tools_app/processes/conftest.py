"""Commands in namespaces of their own, in every way that this machine has."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.tools_app.shell.conftest import CONTEXT
from tools_app.processes import tool
from tools_app.processes.isolation import Bounds, Isolation
from tools_app.processes.tool import WALLS, CommandRunner, why_not
from tools_app.workspace.stores.memory import MemoryWorkspace

Command = Callable[..., Awaitable[dict[str, Any]]]
SMALL: dict[str, Any] = {
    "seconds": 20.0,
    "cpu_seconds": 10,
    "memory_bytes": 200_000_000,
    "processes": 24,
    "disk_bytes": 20_000_000,
}


@pytest.fixture(params=WALLS, ids=lambda each: each.name)
async def isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    found: Isolation = request.param
    if reason := await why_not(found):
        pytest.skip(f"commands cannot be kept apart by {found.name} here: {reason}")
    monkeypatch.setitem(tool._TRIED, ("", ""), found)
    return found


@pytest.fixture
def workspace() -> MemoryWorkspace:
    return MemoryWorkspace()


@pytest.fixture
def command(isolation: Isolation, workspace: MemoryWorkspace) -> Command:
    async def run(text: str, cwd: str = "/", **bounds: Any) -> dict[str, Any]:
        return await CommandRunner(workspace=workspace, bounds=Bounds(**{**SMALL, **bounds})).run(CONTEXT, text, cwd)

    return run
