"""The start of a worker ends commands that workers have left which are gone."""

import threading

from celery import signals

from tools_app.processes.folders import sweep


def connect() -> None:
    """Let Celery say when a worker has started."""
    signals.worker_ready.connect(_on_start, weak=False, dispatch_uid="think_commands_ready")


def sweep_soon() -> threading.Thread:
    """Sweep in a thread, as a container engine may take a while. Nothing is asked of it where nothing was left."""
    thread = threading.Thread(target=sweep, name="think-commands-sweep", daemon=True)
    thread.start()
    return thread


def _on_start(**_: object) -> None:
    sweep_soon()
