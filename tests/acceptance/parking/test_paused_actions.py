"""Actions whose process is killed: what waits goes on with no client connected, and no effect happens twice."""

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.parking.visits import beside, ended, say
from tests.acceptance.product import Product, wait_for


@pytest.mark.smoke
async def test_a_paused_action_survives_its_worker_and_goes_on_with_nobody_connected(
    shared_product: Product, tmp_path: Path
) -> None:
    product, paper = shared_product, tmp_path / "paper"
    await say(product, "pause", f'call tool seal {{"path": "{paper}"}}\nsay: It says {{result}}.')
    await ended(product, "pause")
    product.workers[0].restart()  # here: a process ends with the thread that started it
    assert beside(product, "effects", "pause") == []
    assert beside(product, "approve", "pause") == [True, False]
    await asyncio.to_thread(
        wait_for, lambda: beside(product, "effects", "pause") == [["seal", "settled", "sealed"]], what="the effect"
    )
    await ended(product, "pause")
    assert len(paper.read_text(encoding="utf-8").splitlines()) == 1
    assert beside(product, "said", "pause") == "sealed"


async def test_a_process_killed_between_effect_and_record_leaves_an_unknown_outcome_and_one_effect(
    shared_product: Product, tmp_path: Path
) -> None:
    product, paper = shared_product, tmp_path / "paper"
    await say(product, "burn", f'call tool burn {{"path": "{paper}"}}\nsay: It says {{result}}.')
    await asyncio.to_thread(wait_for, lambda: not product.workers[0].is_running, what="the worker being killed")
    product.workers[0].start()
    await ended(product, "burn")
    assert len(paper.read_text(encoding="utf-8").splitlines()) == 1
    assert beside(product, "effects", "burn") == [["burn", "pending", None]]
    assert "ActionPending" in beside(product, "said", "burn")
