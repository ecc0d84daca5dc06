"""Processes of this machine, as the tests of commands find them."""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Callable

_naps = itertools.count(1)


def own_nap() -> str:
    """A command line that sleeps longer than any test waits, and that no test beside this one uses."""
    return f"sleep 300.{next(_naps)}{os.getpid()}"


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - of other processes, which tell us nothing
        await asyncio.sleep(0.02)


def processes_of(words: str) -> list[str]:
    """Processes of this machine whose command line is exactly this."""
    found = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if line.split(maxsplit=1)[1:] == [words]]
