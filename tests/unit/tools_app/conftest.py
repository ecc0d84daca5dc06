"""A workspace in memory; the walls around code of models, one set of them after the other."""

from typing import Any

import pytest

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox import deno
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.walls import Wall, Walls, candidates
from tools_app.workspace.stores.memory import MemoryWorkspace


@pytest.fixture
def workspace() -> MemoryWorkspace:
    return MemoryWorkspace()


@pytest.fixture(params=("no network, another user", "another user", "no network", "no new rights", "limits"))
async def each_walls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Walls:
    """Code of models behind these walls and no stronger ones; skips what this machine cannot have."""
    found = next((each for each in candidates() if each.name == request.param), None)
    if found is None:
        pytest.skip(f"code cannot be kept apart by {request.param} here: this process is not root")
    settings.THINK_SANDBOX_MAY_LACK = ", ".join(Wall)
    monkeypatch.setattr(deno, "candidates", lambda: [found])
    sandbox = DenoSandbox(spare=False)
    try:
        await sandbox.walls()
    except SandboxUnavailable as error:
        pytest.skip(f"code cannot be kept apart by {request.param} here: {error.message}")
    finally:
        await sandbox.close()
    return found
