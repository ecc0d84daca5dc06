"""Each benchmark runs for a second and gives its rows. No time is asserted."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.apart import MARK
from bench.catalogue import TITLES
from bench.rows import Row, from_json
from tests.acceptance.ops.tree import make_copy
from tests.acceptance.product import ROOT

FAULTS = ("refused, cut", "differ", "lost or doubled")  # rows that count faults, whatever the time
ON_A_PRODUCT = (
    "turns",
    "load",
    "calls",
    "first_chunk",
    "delivery",
    "opening",
    "idle",
    "reconnect",
    "recovery",
)  # in one run they share it
SECONDS = 170

Rows = dict[str, list[Row]]


def run(*names: str, seconds: float = SECONDS) -> tuple[Rows, str]:
    """The rows of each benchmark, as far as they came, and what was said about errors."""
    command = [sys.executable, "-m", "bench", *names, "--rows", "--smoke"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds)
    found = [from_json(line.removeprefix(MARK)) for line in done.stdout.splitlines() if line.startswith(MARK)]
    assert (done.returncode == 0) == (len(found) == len(names)), done.stdout + done.stderr[-3000:]
    return dict(zip(names, found, strict=False)), done.stderr[-3000:]


@pytest.fixture(scope="module")
def rows_on_a_product() -> tuple[Rows, str]:
    """Rows of the benchmarks that run on a product, all from one process."""
    return run(*ON_A_PRODUCT, seconds=SECONDS * 2)


def check(name: str, rows: list[Row]) -> None:
    assert rows
    assert all(row.what and row.unit is not None for row in rows)
    faults = [row for row in rows if any(word in row.what for word in FAULTS)]
    assert [row.what for row in faults if row.median] == []
    assert bool(faults) == (name in {"load", "delivery", "durable", "reconnect", "recovery"})


@pytest.mark.timeout(SECONDS * 2 + 30)
@pytest.mark.parametrize("name", ON_A_PRODUCT)
def test_benchmark_of_the_product_gives_its_rows(rows_on_a_product: tuple[Rows, str], name: str) -> None:
    found, said = rows_on_a_product
    assert name in found, said
    check(name, found[name])


@pytest.mark.parametrize("name", sorted(TITLES.keys() - set(ON_A_PRODUCT)))
def test_benchmark_of_a_part_gives_its_rows(name: str) -> None:
    found, said = run(name)
    assert name in found, said
    check(name, found[name])


@pytest.mark.timeout(620)
def test_a_checkout_is_compared_with_another_by_the_driver_of_this_one(tmp_path: Path) -> None:
    """Both make their databases and start their products, which takes a busy machine minutes."""
    other = make_copy(tmp_path / "other")
    (other / ".venv").symlink_to(Path(sys.prefix))
    (other / "bench" / "__init__.py").write_text("raise RuntimeError('the driver of the other checkout')")
    command = [sys.executable, "-m", "bench.compare", f"other={other}", "--only", "calls", "core"]
    command += ["--runs", "1", "--smoke", "--database", "sqlite"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if "|" in line]
    head, _, *lines = cells
    assert head[2:5] == ["other", "this", "this / other"]
    rows = [line for line in lines if not line[0].startswith("**")]
    assert len(rows) > 10
    assert [line[0] for line in rows if not all(line[2:5])] == []


def test_an_unknown_benchmark_is_named() -> None:
    command = [sys.executable, "-m", "bench", "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "delivery" in done.stderr
