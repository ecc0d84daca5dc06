"""Celery's way in. Sent by name from `dispatch.py`; no module imports this one."""

from celery import shared_task

from fibers.execution import recovery
from fibers.execution.runner import run_fiber as run
from fibers.execution.worker_loop import run_on_shared_loop


@shared_task(name="fibers.run_fiber", acks_late=False, ignore_result=True)
def run_fiber(fiber_id: str) -> None:
    """Run a fiber and drain its lane. Safe to run twice, and to lose: the sweeper sends unclaimed fibers."""
    run_on_shared_loop(run(fiber_id))


@shared_task(name="fibers.sweep", ignore_result=True)
def sweep() -> None:
    """Recover, send again, prune. Every worker does so by itself; this is for a beat entry or by hand."""
    recovery.sweep()
