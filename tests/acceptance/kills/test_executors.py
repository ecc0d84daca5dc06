"""A tool that a process of its own runs: the turn's worker, the executor and both are killed, and it happens once."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.parking.visits import beside, ended, say
from tests.acceptance.product import Process, Product, wait_for

APPS = "tests.acceptance.desk,tests.acceptance.lab"


@pytest.fixture
def lab(shared_product: Product) -> Iterator[Process]:
    """A worker with the lab's tools alone; not started yet."""
    options = ["--pool", "threads", "--concurrency", "4", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    celery = [sys.executable, "-m", "celery", "--app", "thinkproject.celery", "worker", *options]
    command = [*celery, "-Q", "chat.tool.lab", "--hostname", "lab@%h"]
    environ = shared_product.environ | {"THINK_APPS": APPS}
    process = Process("lab", command, environ, shared_product.folder)
    yield process
    if process.is_running:
        process.kill()


def attempts(paper: Path) -> list[str]:
    return paper.read_text(encoding="utf-8").splitlines() if paper.exists() else []


def effects(paper: Path) -> int:
    return len(list(paper.parent.glob(f"{paper.name}.*.*")))


@pytest.mark.smoke("both")
@pytest.mark.parametrize("lost", ["worker", "executor", "both", "before", "after"])
def test_a_call_of_an_executor_happens_once_whatever_is_killed(
    shared_product: Product, lab: Process, tmp_path: Path, lost: str
) -> None:
    """`before`: the worker before there is an executor; `after`: both when the call has its result."""
    product, room, paper = shared_product, f"survey-{lost}", tmp_path / "paper"
    if lost != "before":
        lab.start()
    script = f'call tool measure {{"paper": "{paper}"}} id=one\nsay: It is {{result}}.'
    asyncio.run(say(product, room, script, agent="surveyor"))
    if lost == "before":
        wait_for(lambda: beside(product, "standing", room)["status"] == "parked", what="the turn waiting")
        product.workers[0].restart()
        lab.start()
    wait_for(lambda: len(attempts(paper)) == 1, what="the call")
    if lost in {"executor", "both"}:
        lab.kill()
    if lost in {"worker", "both"}:
        product.workers[0].restart()
    if not lab.is_running:
        lab.start()
        wait_for(lambda: len(attempts(paper)) == 2, what="the call again")
    Path(f"{paper}.go").touch()
    if lost == "after":
        wait_for(lambda: effects(paper) == 1, what="the effect")
        lab.kill()
        product.workers[0].restart()
        lab.start()
    asyncio.run(ended(product, room))
    assert beside(product, "said", room) == "12 metres"
    assert effects(paper) == 1
    assert len({line.split()[0] for line in attempts(paper)}) == 1
    assert beside(product, "standing", room)["recoveries"] == 0 or lost in {"worker", "both", "after"}
