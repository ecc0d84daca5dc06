"""Commands in namespaces of their own, in every way that this machine has."""

import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools_app.shell.conftest import CONTEXT
from tools_app.processes import tool
from tools_app.processes.isolation import CommandBounds, Isolation
from tools_app.processes.tool import WALLS, CommandRunner, why_not
from tools_app.workspace.stores.memory import MemoryWorkspace

Command = Callable[..., Awaitable[dict[str, Any]]]
REASONS: dict[str, str] = {}
"""Why a way does not work here, empty where it does. Trying an engine takes a while, so it is done once."""
SMALL: dict[str, Any] = {
    "seconds": 20.0,
    "cpu_seconds": 10,
    "memory_bytes": 200_000_000,
    "processes": 24,
    "disk_bytes": 20_000_000,
}


async def why_not_here(wall: Isolation) -> str:
    """Empty where this way works."""
    if wall.name not in REASONS:
        REASONS[wall.name] = await why_not(wall)
    return REASONS[wall.name]


@pytest.fixture(params=WALLS, ids=lambda each: each.name)
async def isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    found: Isolation = request.param
    if reason := await why_not_here(found):
        pytest.skip(f"commands cannot be kept apart by {found.name} here: {reason}")
    monkeypatch.setitem(tool._TRIED, ("", ""), found)
    return found


@pytest.fixture
def command(isolation: Isolation, workspace: MemoryWorkspace) -> Command:
    async def run(text: str, cwd: str = "/", **bounds: Any) -> dict[str, Any]:
        return await CommandRunner(workspace=workspace, bounds=CommandBounds(**{**SMALL, **bounds})).run(
            CONTEXT, text, cwd
        )

    return run


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A place for the directories of commands that no test beside this one uses."""
    with tempfile.TemporaryDirectory(prefix="thk-own-") as name:
        Path(name).chmod(0o755)  # commands run as another user
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield name
