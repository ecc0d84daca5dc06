"""Celery as a child of `make run`: `python -m thinkproject.run.gated --gate FD worker --pool threads …`.

Like `celery --app thinkproject.celery worker …`, but it loads all code first and then waits until the database is
prepared (`gate.py`), and it leaves out what only Celery's interactive commands need.
"""

import argparse
import os
import sys

import django

from thinkproject.kernel.loading import starting
from thinkproject.run.gate import wait_at


def main(arguments: list[str]) -> int:
    """Load the apps, wait at the gate, become a worker or beat. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m thinkproject.run.gated", description=main.__doc__)
    parser.add_argument("--gate", type=int, required=True, help="file descriptor of the supervisor's gate")
    parser.add_argument("command", choices=["worker", "beat"])
    options, rest = parser.parse_known_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    with starting():
        django.setup()
        from celery.bin.base import CLIContext  # noqa: PLC0415 - after the apps, like those below

        from thinkproject.celery import app  # noqa: PLC0415 - as above

        if options.command == "worker":
            from celery.bin.worker import worker as command  # noqa: PLC0415 - only one of them is loaded
        else:
            from celery.bin.beat import beat as command  # noqa: PLC0415 - as above
    if not wait_at(options.gate):
        return 1
    context = CLIContext(app=app, no_color=True, workdir=None)
    return int(command.main(args=rest, prog_name="celery", obj=context, standalone_mode=False) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
