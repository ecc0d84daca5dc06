"""The processes of one run, and the thread of the first worker that sends the periodic tasks."""

import threading
from pathlib import Path
from types import SimpleNamespace

from celery import Celery, signals

from thinkproject.run.gated import beat_beside
from thinkproject.run.services import Services


def test_the_first_worker_alone_sends_the_periodic_tasks(tmp_path: Path) -> None:
    settings = SimpleNamespace(WEB_PROCESSES=2, WORKER_PROCESSES=2, WORKER_THREADS=50, DATA_DIR=tmp_path)
    services = Services(settings, listener=3, gate=4)
    assert [*services.first, *services.further] == ["web-1", "worker-1", "web-2", "worker-2"]
    with_beat = [name for name in (*services.webs, *services.workers) if "--with-beat" in services.command(name)]
    assert with_beat == ["worker-1"]


def test_the_thread_beside_a_worker_sends_what_is_due(tmp_path: Path) -> None:
    app = Celery("beating", broker="memory://", set_as_current=False)
    app.conf.beat_schedule = {"often": {"task": "often", "schedule": 0.05}}
    sent = threading.Event()

    def note(sender: str, **_signal: object) -> None:
        if sender == "often":
            sent.set()

    thread = beat_beside(app, str(tmp_path / "schedule"))
    signals.after_task_publish.connect(note)
    try:
        thread.start()
        assert sent.wait(20)
    finally:
        thread.service.stop()
        thread.join(20)
        signals.after_task_publish.disconnect(note)
        signals.worker_ready.disconnect(dispatch_uid="think_beat_starts")
        signals.worker_shutting_down.disconnect(dispatch_uid="think_beat_stops")
    assert not thread.is_alive()
