"""The Celery app. Tasks carry names and ids only; the work is described in the database.

`thinkproject.apps` imports this module in every process: one that forgot it would talk to a default broker.
"""

import gc
import os
import threading
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready, worker_shutting_down
from kombu.transport.redis import Channel

SEEN_SECONDS = 5.0

# When Redis goes away kombu gives back what it had not acknowledged, over the connection it has just closed, and the
# worker dies of it. Nothing needs to be given back: the sweeper sends unclaimed fibers.
Channel.do_restore = False

# Celery has a worker and beat run the system checks and drops what they find. They load the URLs with all of the HTTP
# API, which is a sixth of a worker's memory and a second of its start; web processes and `manage.py check` run them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("think")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

_leaving = threading.Event()


@worker_init.connect
def _on_init(**_signal: Any) -> None:
    from chat.llm.registry import load_adapters  # noqa: PLC0415 - this module loads before the apps

    load_adapters()


@worker_ready.connect
def _on_ready(**_signal: Any) -> None:
    threading.Thread(target=_say_so, name="think-worker-seen", daemon=True).start()


@worker_ready.connect
def _on_loaded(**_signal: Any) -> None:
    # What was loaded stays. A full collection that looks through it holds up every stream of the worker for as long.
    gc.collect()
    gc.freeze()


@worker_shutting_down.connect
def _on_leaving(**_signal: Any) -> None:
    _leaving.set()


def _say_so() -> None:
    from chat.http.health import note_worker  # noqa: PLC0415 - as above

    while True:
        note_worker()
        if _leaving.wait(SEEN_SECONDS):
            return
