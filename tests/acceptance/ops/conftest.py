"""One installed copy of the tree for all tests here; each `make run` has a data directory of its own."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.ops.tree import Run, make_copy


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
    """Prepare a `make run` (not started): `make_run(data_dir=…, port=…, THINK_X="…")`."""
    runs: list[Run] = []
    folder = Path(tempfile.mkdtemp(prefix="thkd"))

    def make(*, data_dir: Path | None = None, port: int = 0, **extra: str) -> Run:
        place = data_dir or folder / f"data{len(runs)}"
        run = Run(tree, place, tree.parent / "home", extra=extra)
        run.port = port or run.port
        runs.append(run)
        return run

    yield make
    for run in runs:
        run.end()
    shutil.rmtree(folder, ignore_errors=True)
