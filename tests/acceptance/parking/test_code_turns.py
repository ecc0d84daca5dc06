"""Code whose worker is killed, while a person is asked and while it runs: nothing is lost, nothing happens twice."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.acceptance.parking.visits import beside, ended, say
from tests.acceptance.product import Product, wait_for

CODE = """const path = PATH;
const said = [await tools.jot({path}), await tools.sign({path}), await tools.hold({path})];
said.join(' ')"""


@pytest.mark.smoke
async def test_code_survives_its_worker_while_it_waits_and_while_it_runs(
    shared_product: Product, tmp_path: Path
) -> None:
    product, paper = shared_product, tmp_path / "paper"

    def is_parked() -> bool:
        return bool(beside(product, "standing", "scrivener")["status"] == "parked")

    def lines() -> list[str]:
        """Which call wrote each line, by its place in the code."""
        written = paper.read_text(encoding="utf-8").splitlines() if paper.exists() else []
        return [line.rpartition(":")[2] for line in written]

    code = CODE.replace("PATH", json.dumps(str(paper)))
    script = f"call tool execute {json.dumps({'code': code})} id=code\nsay: It says {{result}}."
    await say(product, "scrivener", script, agent="scrivener")
    await asyncio.to_thread(wait_for, is_parked, what="the question")
    await asyncio.to_thread(product.workers[0].restart)
    assert (lines(), is_parked()) == (["1"], True)
    assert beside(product, "approve", "scrivener") == [True, False]
    await asyncio.to_thread(wait_for, lambda: lines() == ["1", "2", "3"], what="the code running")
    await asyncio.to_thread(product.workers[0].restart)
    await asyncio.to_thread(wait_for, lambda: lines() == ["1", "2", "3", "3"], what="the code running again")
    await asyncio.to_thread(Path(f"{paper}.go").touch)
    await ended(product, "scrivener")
    assert lines() == ["1", "2", "3", "3"]  # the call that the kill cut has run again, under its key, and no other
    assert "jotted signed held" in beside(product, "said", "scrivener")
