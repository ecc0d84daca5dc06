"""Windows, pauses and retries on a clock that jumps: how busy the machine is changes nothing."""

from asyncio import AbstractEventLoop
from collections.abc import Callable

from tests.inprocess.quiet_loop import JumpingLoop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], AbstractEventLoop]]:
    """Every test here has a loop of this kind."""
    return {"jumping": JumpingLoop}
