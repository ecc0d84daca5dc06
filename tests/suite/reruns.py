"""Each failed test once more, alone: `python -m tests.suite.reruns REPORT OUT`, at the end of `.ci/run`.

A test that passes then does not fail the run. It is unsteady, which is a defect all the same: it is printed with its
first failure and written to `OUT`. A test that fails twice fails the run.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
MOST: Final = 20
"""So many failures are no unsteadiness: nothing is run again."""
SECONDS: Final = 400


@dataclass(frozen=True)
class Failure:
    """A test that failed, on which database, and what it said."""

    nodeid: str
    database: str
    text: str

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"{self.nodeid} ({self.database})"


def failures(report: Path) -> Iterator[Failure]:
    """The failed tests in the file of `tests/conftest.py`; one whose set-up and end failed is there once."""
    for line in report.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for nodeid, text in record["failed"].items():
            yield Failure(nodeid, record["database"], text)


def passes_alone(failure: Failure) -> bool:
    """Run one test in a process of its own. Prints what it says when it fails again."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", failure.nodeid]
    environ = {**os.environ, "TEST_DATABASE": failure.database}
    environ.pop("TEST_REPORT", None)
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        _say(f"{failure.name}: not at its end after {SECONDS} s")
        return False
    if done.returncode != 0:
        _say(done.stdout[-20_000:] + done.stderr[-5_000:])
    return done.returncode == 0


def rerun(report: Path, out: Path) -> int:
    """Run them again, print and write what is unsteady. Returns the exit code: 1 when one failed twice."""
    found = list(failures(report))
    out.write_text("", encoding="utf-8")
    if len(found) > MOST:
        _say(f"{len(found)} tests failed: too many to run them again.")
        return 1
    twice = []
    for failure in found:
        _say(f"Once more, alone: {failure.name}")
        if not passes_alone(failure):
            twice.append(failure)
    unsteady = [failure for failure in found if failure not in twice]
    if unsteady:
        text = "\n\n".join(f"{failure.name}\n{failure.text}" for failure in unsteady)
        out.write_text(text + "\n", encoding="utf-8")
        _say(f"\nUNSTEADY: {len(unsteady)} failed and passed alone\n\n{text}")
    for failure in twice:
        _say(f"FAILED TWICE: {failure.name}")
    return 1 if twice else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(rerun(Path(sys.argv[1]), Path(sys.argv[2])))
