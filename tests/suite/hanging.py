"""A test that hangs for good ends its process: a plugin of pytest.

The time limit of a test raises an error in it. A loop can swallow that, and what follows a failure has no limit: the
failure calls both off, this one and that of pytest's `faulthandler_timeout`, which is therefore set anew. The process
prints its stacks and ends; pytest-xdist reports the test as failed and runs the others in another process.

A test that reached its limit in a loop stood in none of its own lines, so its report says where each task was.
"""

import asyncio
import faulthandler
import gc
import io
import os
import signal
from collections.abc import Generator
from types import FrameType

import pytest

STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep a way to the terminal: what a test prints is caught."""
    config.stash[STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    os.close(config.stash[STDERR])


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> Generator[None, object, object]:
    """Note where tasks are when the limit is reached: the error that it raises has their loop cancel them."""
    done = yield
    fail = signal.getsignal(signal.SIGALRM)

    def note(number: int, frame: FrameType | None) -> None:
        item.add_report_section("call", "tasks", tasks_of_all_loops())
        assert callable(fail)
        fail(number, frame)

    if callable(fail):
        signal.signal(signal.SIGALRM, note)
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test whose own limit is beyond the process's go on until that one: a long run of chaos."""
    seconds = float(item.config.getini("faulthandler_timeout"))
    own = item.get_closest_marker("timeout")
    if seconds and own is not None and own.args and own.args[0] >= seconds:
        faulthandler.dump_traceback_later(own.args[0] + seconds, file=item.config.stash[STDERR], exit=True)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Set the limit anew for what follows a failure; the end of the test calls it off."""
    seconds = float(node.config.getini("faulthandler_timeout"))
    if isinstance(node, pytest.Item) and seconds:
        faulthandler.dump_traceback_later(seconds, file=node.config.stash[STDERR], exit=True)


def tasks_of_all_loops() -> str:
    """The stacks of all tasks that have not ended."""
    out = io.StringIO()
    for task in gc.get_objects():
        if isinstance(task, asyncio.Task) and not task.done():
            task.print_stack(file=out)
    return out.getvalue()
