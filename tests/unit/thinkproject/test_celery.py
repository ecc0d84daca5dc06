"""A worker process, once it is loaded."""

import gc
import weakref

from celery.signals import worker_ready

from thinkproject import celery


def test_full_collections_of_a_worker_leave_out_what_was_loaded() -> None:
    connected = [known() if isinstance(known, weakref.ref) else known for _, known in worker_ready.receivers]
    assert celery._on_loaded in connected
    loaded = len(gc.get_objects())
    try:
        celery._on_loaded()
        assert gc.get_freeze_count() > loaded / 2
        assert len(gc.get_objects()) < loaded / 2
    finally:
        gc.unfreeze()
