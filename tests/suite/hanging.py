"""A test that hangs for good ends its process: a plugin of pytest.

The time limit of a test raises an error in it. A loop can swallow that, and what follows a failure has no limit: the
failure calls both off, this one and that of pytest's `faulthandler_timeout`, which is therefore set anew. The process
prints its stacks and ends; pytest-xdist reports the test as failed and runs the others in another process.
"""

import faulthandler
import os

import pytest

STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep a way to the terminal: what a test prints is caught."""
    config.stash[STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    os.close(config.stash[STDERR])


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Set the limit anew for what follows a failure; the end of the test calls it off."""
    seconds = float(node.config.getini("faulthandler_timeout"))
    if isinstance(node, pytest.Item) and seconds:
        faulthandler.dump_traceback_later(seconds, file=node.config.stash[STDERR], exit=True)
