"""What the machine has for scripts."""

from collections.abc import AsyncIterator

import pytest

from tools_app.code_tool.tool import shared_sandbox
from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.packages import python_folder
from tools_app.shell.tool import shell_sandbox


@pytest.fixture
def python_is_there() -> bool:
    try:
        python_folder(sandbox_settings.packages_folder)
    except SandboxUnavailable:
        return False
    return True


@pytest.fixture(autouse=True)
async def _processes() -> AsyncIterator[None]:
    """Each test has sandboxes of its own loop, and leaves no process."""
    kinds = (shared_sandbox, shell_sandbox)
    for kind in kinds:
        kind.cache_clear()
    yield
    for kind in kinds:
        if kind.cache_info().currsize:
            made = kind()
            assert isinstance(made, DenoSandbox)
            await made.close()
        kind.cache_clear()
