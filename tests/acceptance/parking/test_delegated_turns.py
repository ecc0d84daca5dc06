"""An agent works for another one, and the worker is killed meanwhile: one run, one result, effects under one key."""

import asyncio
import json
from pathlib import Path

from tests.acceptance.parking.visits import beside, ended, say
from tests.acceptance.product import Product, wait_for


async def test_a_delegation_survives_the_worker_of_parent_and_child(shared_product: Product, tmp_path: Path) -> None:
    product, paper = shared_product, tmp_path / "paper"

    def lines() -> list[str]:
        return paper.read_text(encoding="utf-8").splitlines() if paper.exists() else []

    task = f"call tool hold {json.dumps({'path': str(paper)})} id=h\nsay: It is {{result}}."
    script = f"call tool scrivener {json.dumps({'task': task})} id=one\nsay: {{result}}"
    await say(product, "commission", script, agent="commissioner")
    await asyncio.to_thread(wait_for, lambda: len(lines()) == 1, what="the child's call")
    assert beside(product, "standing", "commission")["status"] == "parked"
    await asyncio.to_thread(product.workers[0].restart)
    await asyncio.to_thread(wait_for, lambda: len(lines()) == 2, what="the call running again")
    await asyncio.to_thread(Path(f"{paper}.go").touch)
    await ended(product, "commission")
    [outcome] = beside(product, "outcomes", "commission")
    assert (outcome["status"], outcome["summary"]) == ("completed", "It is held.")
    assert len(set(lines())) == 1
    assert "It is held." in beside(product, "said", "commission")
