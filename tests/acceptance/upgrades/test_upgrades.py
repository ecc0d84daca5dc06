"""Deploys of real workers and beats: a delegation of weeks ends once, and a schedule fires once."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import products
from tests.acceptance.product import Product, wait_for
from tests.acceptance.upgrades.releases import environ_of, read_ledger, release
from tests.chaos.durable.driver import start_beat

EVERY_SECONDS = 1
OCCURRENCES = 5
SENT = 5
QUICK = "tests.acceptance.upgrades.quick_beat"
TASK = """
call tool note {"what": "before"} id=b
say: I rest.
call tool rest {"days": 21} id=r
say: I am {result}.
call tool note {"what": "after"} id=a
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("releases")
    release(found, 1)
    return found


@pytest.fixture(scope="module")
def deployed(folder: Path) -> Iterator[Product]:
    """Two workers with the first version of an app; no one is connected."""
    with products() as make:
        product = make(webs=0, workers=2, environ=environ_of(folder))
        product.person("alice")
        yield product


def beside(product: Product, function: str, *arguments: Any) -> Any:
    return product.call(f"tests.acceptance.upgrades.beside:{function}", *arguments)


def upgrade(product: Product, folder: Path, version: int, *, meanwhile: Callable[[], None]) -> None:
    """Stop the workers, replace the source, let time pass, and start them."""
    for worker in product.workers:
        worker.stop()
    release(folder, version)
    meanwhile()
    for worker in product.workers:
        worker.log_path.unlink()
        worker.start()
    product.wait_until_ready()


@pytest.mark.smoke
def test_a_delegation_of_21_days_ends_once_across_two_upgrades_of_real_workers(deployed: Product, folder: Path) -> None:
    product = deployed

    def noted() -> list[tuple[str, int]]:
        lines = [line for line in read_ledger(folder) if not line["key"].startswith("schedule:")]
        return [(line["what"], line["version"]) for line in lines if line["what"] != "rest"]

    def sleep(tool: str, name: str) -> str:
        return f"call tool {tool} {json.dumps({'task': f'{TASK}say: {name} {{result}}.'})} id={name}"

    both = f"{sleep('sleeper_later', 'later')}\n{sleep('sleeper', 'one')}\nsay: They have slept."
    beside(product, "ask", "principal", "weeks", f'{both}\ncall tool note {{"what": "parent"}} id=n\nsay: {{result}}.')
    wait_for(lambda: beside(product, "statuses", "sleeper") == ["parked", "parked"], what="both sleeping")
    wait_for(lambda: beside(product, "statuses", "principal") == ["parked"], what="the parent waiting")
    assert noted() == [("before", 1), ("before", 1)]
    upgrade(product, folder, 2, meanwhile=lambda: beside(product, "pass_days", 10))
    beside(product, "ask", "ticker", "probe", "say: hello")
    wait_for(lambda: beside(product, "answers", "ticker") == ["hello"], what="the new workers working")
    assert beside(product, "statuses", "sleeper") == ["parked", "parked"]
    assert beside(product, "outcomes") == [None, None]
    upgrade(product, folder, 3, meanwhile=lambda: beside(product, "pass_days", 11.1))
    wait_for(lambda: beside(product, "statuses", "principal") == ["completed"], what="the parent's answer")
    wait_for(lambda: ("told", 3) in noted(), what="the end of the other run being told")
    assert Counter(noted()) == {("before", 1): 2, ("after", 3): 2, ("parent", 3): 1, ("told", 3): 1}
    assert len({line["key"] for line in read_ledger(folder) if line["what"] == "rest"}) == 2
    assert sorted(beside(product, "answers", "sleeper")) == [
        f"I rest.I am rested.{name} noted after by version 3." for name in ("later", "one")
    ]
    assert beside(product, "answers", "principal") == ["They have slept.noted parent by version 3."]
    assert [(outcome["status"], outcome["ok"]) for outcome in beside(product, "outcomes")] == [("completed", True)] * 2
    assert beside(product, "statuses", "sleeper") == ["completed", "completed"]


def test_two_beats_and_two_workers_fire_each_occurrence_once(deployed: Product, folder: Path) -> None:
    product = deployed
    beats = [start_beat(product, name, DJANGO_SETTINGS_MODULE=QUICK) for name in ("beat0", "beat1")]
    try:
        schedule = beside(product, "tick_every", EVERY_SECONDS)
        wait_for(lambda: all(beat.log.count("Sending due task sweep") >= SENT for beat in beats), what="both sending")
        wait_for(lambda: len(ticks(folder, schedule)) >= OCCURRENCES, what="the occurrences")
        assert all(beat.is_running for beat in beats)
        assert beside(product, "pause_schedule", schedule)
        wait_for(lambda: all(run["ended"] for run in beside(product, "runs", schedule)), what="the last one's end")
    finally:
        for beat in beats:
            beat.kill()
    runs = [
        {name: datetime.fromisoformat(value) for name, value in run.items()}
        for run in beside(product, "runs", schedule)
    ]
    assert ticks(folder, schedule) == [run["due"] for run in runs]  # each of them once
    for run, following in pairwise(runs):
        missing = following["due"] - timedelta(seconds=EVERY_SECONDS)
        while missing > run["due"]:  # only what was due while the one before had not begun, or went on
            assert missing <= max(run["began"], run["ended"])
            missing -= timedelta(seconds=EVERY_SECONDS)


def ticks(folder: Path, schedule: str) -> list[datetime]:
    """When the occurrences were due that ran, each as often as it ran."""
    lines = [line for line in read_ledger(folder) if line["key"].startswith(f"schedule:{schedule}:")]
    return sorted(datetime.fromisoformat(line["what"]) for line in lines)
