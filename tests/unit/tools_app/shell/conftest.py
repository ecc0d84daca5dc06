"""A shell over a workspace in memory: real processes, which are gone afterwards."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tools_app.core.tool import ToolContext
from tools_app.sandbox.deno import DenoSandbox
from tools_app.shell.tool import BashOptions, ShellRunner, shell_program
from tools_app.workspace.stores.memory import MemoryWorkspace

Shell = Callable[..., Awaitable[dict[str, Any]]]
CONTEXT = ToolContext(
    call_id="c",
    tool_name="bash",
    user_id=1,
    agent="a",
    instance_name="n",
    turn_id="t",
    attempt=1,
    idempotency_key="t:c",
)
NOTHING: dict[str, list[str]] = {
    "created": [],
    "updated": [],
    "deleted": [],
    "directoriesCreated": [],
    "directoriesDeleted": [],
}


@pytest.fixture
async def shell_sandbox() -> AsyncIterator[DenoSandbox]:
    made = DenoSandbox(program=shell_program(), spare=False)
    yield made
    await made.close()


@pytest.fixture
def bash(workspace: MemoryWorkspace, shell_sandbox: DenoSandbox) -> Shell:
    async def run(script: str, cwd: str = "/", **options: Any) -> dict[str, Any]:
        runner = ShellRunner(workspace=workspace, options=BashOptions(sandbox=shell_sandbox, **options))
        return await runner.run(CONTEXT, script, cwd)

    return run


async def texts(workspace: MemoryWorkspace) -> dict[str, str]:
    """All files with their contents."""
    paths = [entry.path for entry in await workspace.glob("/**/*")]
    return {entry.path: (data or b"").decode() async for entry, data in workspace.read_many(paths, max_bytes=10**7)}
