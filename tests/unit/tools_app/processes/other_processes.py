"""Processes of this machine, as the tests of commands find them."""

import asyncio
import itertools
import subprocess
from collections.abc import Callable

NAPS = itertools.count(1)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - of other processes, which tell us nothing
        await asyncio.sleep(0.02)


def processes_of(words: str) -> list[str]:
    """Processes of this machine whose command line is exactly this."""
    found = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if line.split(maxsplit=1)[1:] == [words]]
