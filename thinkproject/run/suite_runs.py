"""Help for runs of the tests beside pytest: the tenth whose turn it is, busy loops, new checkouts, skipped tests.

Standard library only, as `bootstrap`.
"""

from __future__ import annotations  # as in `bootstrap`

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def next_tenth(runs_file: Path) -> int:
    """The tenth of what is left out whose turn it is: by the day, and by the runs that this checkout has seen on it."""
    day = int(time.time() // 86_400)
    try:
        runs = json.loads(runs_file.read_text(encoding="utf-8")).get(str(day), 0)
    except (OSError, ValueError):
        runs = 0
    runs_file.parent.mkdir(exist_ok=True)
    runs_file.write_text(json.dumps({str(day): runs + 1}), encoding="utf-8")
    return int(day + runs) % 10


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Processes that use a core each, and end with the block or with this process."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(count)]  # noqa: S603 - our own
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


@contextlib.contextmanager
def compiled_meanwhile(pytest: list[str], root: Path, environ: dict[str, str]) -> Iterator[None]:
    """In a new checkout, have one process compile the tests during the block: all processes of a run would do it."""
    if (root / "tests" / "db" / "__pycache__").exists():
        yield
        return
    command = [*pytest, "-qq", "-p", "no:xdist", "--collect-only"]
    nowhere = subprocess.DEVNULL  # what cannot be collected is said by the run itself
    with subprocess.Popen(command, cwd=root, env=environ, stdout=nowhere, stderr=nowhere):  # noqa: S603 - our own
        yield


def not_tested(report: Path) -> list[str]:
    """Report skipped tests with reasons. Shape: one line per reason and run, from the file of `tests/conftest.py`."""
    try:
        records = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []
    skipped = [(record["database"], reason, count) for record in records for reason, count in record["skipped"].items()]
    return [f"not tested ({database}): {count}, because: {reason}" for database, reason, count in skipped]
