"""The start of a worker finds the walls around code of models, and says which of them are missing."""

import asyncio
import logging
import threading

from celery import signals

from tools_app.sandbox.report import ReportStanding, standing_walls

logger = logging.getLogger(__name__)

_found: list[ReportStanding] = []


def connect() -> None:
    """Let Celery say when a worker has started."""
    signals.worker_ready.connect(_on_start, weak=False, dispatch_uid="think_sandbox_ready")


def found_walls() -> ReportStanding | None:
    """The walls that this worker has found, once it has."""
    return _found[-1] if _found else None


def look_soon() -> threading.Thread:
    """Find them in a thread: a worker takes work meanwhile."""
    thread = threading.Thread(target=_look, name="think-sandbox-walls", daemon=True)
    thread.start()
    return thread


def _look() -> None:
    found = asyncio.run(standing_walls())
    _found.append(found)
    if found.caution:
        facts = {"action": "sandbox_start", "lacks": sorted(found.lacks)}
        logger.warning("sandbox: %s", found.caution, extra=facts)


def _on_start(**_: object) -> None:
    look_soon()
