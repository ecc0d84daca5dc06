"""Celery's way in. Sent by name from `dispatch.py`; no module imports this one."""

import asyncio
from collections.abc import Sequence

from celery import shared_task

from fibers.execution import recovery
from fibers.execution.runner import run_fiber as run
from fibers.execution.worker_loop import run_on_shared_loop


@shared_task(name="fibers.run_fiber", acks_late=False, ignore_result=True)
def run_fiber(*fiber_ids: str) -> None:
    """Run fibers side by side and drain their lanes. Safe to run twice and to lose: the sweeper sends them again."""
    run_on_shared_loop(_run_all(fiber_ids))


async def _run_all(fiber_ids: Sequence[str]) -> None:
    outcomes = await asyncio.gather(*map(run, fiber_ids), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


@shared_task(name="fibers.sweep", ignore_result=True)
def sweep() -> None:
    """Recover, send again, prune. Every worker does so by itself; this is for a beat entry or by hand."""
    recovery.sweep()
