"""A program that brings a tool for a turn, in a process of its own; the worker and the program are killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.parking.visits import beside
from tests.acceptance.product import ROOT, Product, wait_for


@contextmanager
def caller(product: Product, room: str, paper: Path, *, seconds: float = 60.0) -> Iterator["subprocess.Popen[str]"]:
    """The program, which asks at once. It is gone after the block."""
    module = "tests.acceptance.parking.caller"
    command = [sys.executable, "-m", module, room, str(paper), str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, env=product.environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(paper: Path) -> int:
    return len(paper.read_text(encoding="utf-8").splitlines()) if paper.exists() else 0


@pytest.mark.smoke
def test_a_tool_runs_once_in_the_process_that_asked_whatever_becomes_of_the_worker(
    shared_product: Product, tmp_path: Path
) -> None:
    product, paper = shared_product, tmp_path / "paper"
    with caller(product, "asked", paper) as process:
        wait_for(lambda: lines(paper) == 1, what="the call")
        product.workers[0].restart()
        Path(f"{paper}.go").touch()
        said, _ = process.communicate(timeout=60)
        assert said == f"It is noted by {process.pid}.\n"
    assert lines(paper) == 1
    assert beside(product, "standing", "asked")["status"] == "completed"


def test_the_turn_of_a_program_that_is_killed_goes_on_without_it(shared_product: Product, tmp_path: Path) -> None:
    product, paper = shared_product, tmp_path / "paper"
    with caller(product, "left", paper, seconds=3) as process:
        wait_for(lambda: lines(paper) == 1, what="the call")
        process.kill()
    wait_for(lambda: beside(product, "standing", "left")["status"] == "completed", what="the end of the turn")
    assert "did not answer within 3.5 s" in beside(product, "said", "left")
    assert lines(paper) == 1
