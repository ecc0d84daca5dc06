"""Each benchmark runs for a second and gives its rows. No time is asserted."""

import subprocess
import sys

import pytest

from bench.__main__ import MARK, TITLES
from bench.rows import Row, from_json
from tests.acceptance.product import ROOT

FAULTS = ("refused, cut", "differ", "lost or doubled")  # rows that count faults, whatever the time


def rows_of(name: str) -> list[Row]:
    command = [sys.executable, "-m", "bench", name, "--rows", "--smoke"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=170)
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(found) == 1, done.stdout
    return from_json(found[0].removeprefix(MARK))


@pytest.mark.parametrize("name", TITLES)
def test_benchmark_gives_its_rows(name: str) -> None:
    rows = rows_of(name)
    assert rows
    assert all(row.what and row.unit is not None for row in rows)
    faults = [row for row in rows if any(word in row.what for word in FAULTS)]
    assert [row.what for row in faults if row.median] == []
    assert bool(faults) == (name in {"delivery", "reconnect", "recovery"})


def test_an_unknown_benchmark_is_named() -> None:
    command = [sys.executable, "-m", "bench", "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "delivery" in done.stderr
