"""One installed copy of the tree for all tests here; each `make run` has a data directory of its own."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance import prepared
from tests.acceptance.ops.tree import Run, make_copy
from tests.acceptance.product import base_environ


@pytest.fixture(scope="session")
def tree() -> Iterator[Path]:
    """A copy of the committed tree, without an environment."""
    folder = Path(tempfile.mkdtemp(prefix="thko"))
    make_copy(folder / "tree")
    (folder / "home").mkdir()
    yield folder / "tree"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def make_run(tree: Path) -> Iterator[Callable[..., Run]]:
    """Prepare a `make run` (not started): `make_run(data_dir=…, port=…, is_migrated=True, THINK_X="…")`."""
    with _runs(tree) as make:
        yield make


@pytest.fixture(scope="module")
def _kept_runs(tree: Path) -> Iterator[list[Run]]:
    with _runs(tree) as make:
        yield [make(is_migrated=True, THINK_WEB_PROCESSES="2", THINK_WORKER_PROCESSES="2")]


@pytest.fixture
def running_product(_kept_runs: list[Run]) -> Run:
    """One `make run` that is ready, for tests that leave it running or ended: its start takes seconds.

    It has two web processes and two workers, however many cores there are.
    """
    [run] = _kept_runs
    if not run.is_running:
        run.start()
    run.wait_until_ready(seconds=200)
    run.wait_until_healthy()
    return run


@contextlib.contextmanager
def _runs(tree: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []
    folder = Path(tempfile.mkdtemp(prefix="thkd"))

    def make(*, data_dir: Path | None = None, port: int = 0, is_migrated: bool = False, **extra: str) -> Run:
        place = data_dir or folder / f"data{len(runs)}"
        if is_migrated:  # for tests of something else than the first start, whose migrations take seconds
            prepared.copy_migrated(base_environ(place), place / prepared.FILE)
        run = Run(tree, place, tree.parent / "home", extra=extra)
        run.port = port or run.port
        runs.append(run)
        return run

    yield make
    for run in runs:
        run.end()
    shutil.rmtree(folder, ignore_errors=True)
