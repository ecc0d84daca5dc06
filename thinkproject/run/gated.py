"""A Celery worker as a child of `make run`: `python -m thinkproject.run.gated --gate FD worker --pool threads …`.

Like `celery --app thinkproject.celery worker …`, but it loads all code first and then waits until the database is
prepared (`gate.py`), and it leaves out what only Celery's interactive commands need. With `--with-beat` a thread of it
sends the periodic tasks: a process of its own for two tasks an hour takes as much memory as a web server.
"""

import argparse
import os
import sys
from typing import Any

import django

from thinkproject.kernel.loading import starting
from thinkproject.run.gate import wait_at


def main(arguments: list[str]) -> int:
    """Load the apps, wait at the gate, become a worker. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m thinkproject.run.gated", description=main.__doc__)
    parser.add_argument("--gate", type=int, required=True, help="file descriptor of the supervisor's gate")
    parser.add_argument("--with-beat", metavar="FILE", help="send the periodic tasks too; the file keeps when")
    parser.add_argument("command", choices=["worker"])
    options, rest = parser.parse_known_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    with starting():
        django.setup()
        from celery.bin.base import CLIContext  # noqa: PLC0415 - after the apps, like those below
        from celery.bin.worker import worker as command  # noqa: PLC0415 - as above

        from thinkproject.celery import app  # noqa: PLC0415 - as above

        if options.with_beat is not None:
            beat_beside(app, options.with_beat)
    if not wait_at(options.gate):
        return 1
    context = CLIContext(app=app, no_color=True, workdir=None)
    return int(command.main(args=rest, prog_name="celery", obj=context, standalone_mode=False) or 0)


def beat_beside(app: Any, schedule: str) -> Any:
    """Have a thread of the worker that starts send the periodic tasks. What it was to send while none runs is missed.

    When the worker stops it sends no more, and is not waited for: it may sleep until the next task is due. Returns the
    thread, whose `service` is Celery's.
    """
    from celery import signals  # noqa: PLC0415 - after the apps
    from celery.beat import EmbeddedService  # noqa: PLC0415 - as above

    thread: Any = EmbeddedService(app, thread=True, schedule_filename=schedule)

    def start(**_signal: object) -> None:
        thread.start()

    def stop(**_signal: object) -> None:
        thread.service.stop()

    signals.worker_ready.connect(start, weak=False, dispatch_uid="think_beat_starts")
    signals.worker_shutting_down.connect(stop, weak=False, dispatch_uid="think_beat_stops")
    return thread


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
