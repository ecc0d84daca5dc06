"""What a process runs at the moment, and its loop."""

import asyncio
import threading

from fibers.core.states import Interrupt
from fibers.execution.worker_loop import run_on_shared_loop, shared_loop
from fibers.process.runs import RunRegistry, worker_name


class Run:
    def __init__(self, fiber_id: str, fence: int = 1) -> None:
        self.fiber_id, self.fence, self.progress = fiber_id, fence, 0

    def interrupt(self, kind: Interrupt) -> None: ...


def test_a_newer_run_of_the_same_fiber_keeps_its_place() -> None:
    runs, old, new = RunRegistry(), Run("f", 1), Run("f", 2)
    runs.add(old)
    runs.add(new)
    runs.remove(old)
    assert runs.snapshot() == [new]
    runs.remove(new)
    assert runs.snapshot() == []


def test_a_notification_during_the_claim_is_remembered_once() -> None:
    runs = RunRegistry()
    assert runs.signalled("f") is None
    assert runs.add(Run("f")) is True
    assert runs.add(Run("f")) is False


def test_a_notification_finds_the_run() -> None:
    runs, run = RunRegistry(), Run("f")
    assert runs.add(run) is False
    assert runs.signalled("f") is run


def test_the_worker_name_is_stable_within_a_process_and_fits_its_column() -> None:
    assert worker_name() == worker_name()
    assert len(worker_name()) <= 100


def test_all_threads_share_one_loop() -> None:
    async def who() -> tuple[asyncio.AbstractEventLoop, str]:
        return asyncio.get_running_loop(), threading.current_thread().name

    loop, name = run_on_shared_loop(who())
    assert loop is shared_loop()
    assert name == "think-loop"
    assert run_on_shared_loop(who())[0] is loop
