"""The protocol's client in TypeScript, by its authors, run by Deno."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests import npm
from tests.acceptance.product import Product
from tests.acceptance.programs.clients import endpoint
from tests.acceptance.programs.typescript_program import PROGRAM


@pytest.fixture(scope="module")
def program() -> Path:
    """The folder of the program with its packages, as the lock has them."""
    return PROGRAM.get()


async def test_a_program_in_typescript_uses_an_agent(shared_product: Product, program: Path) -> None:
    address, token = endpoint(shared_product), shared_product.token("erin")
    seen: dict[str, Any] = json.loads(
        await asyncio.to_thread(
            npm.deno, program, "run", *npm.offline(program), "--allow-all", "program.ts", address, token
        )
    )
    assert {"chat", "add"} <= set(seen["tools"])
    assert seen["sum"] == {"sum": 42}
    assert seen["chat"]["status"] == "completed"
    assert seen["reports"] > 1
    assert (seen["aborted"], seen["refused"]) == (True, True)
    assert "think://counter/typed" in seen["resources"]
    assert [message["role"] for message in seen["history"]["messages"]] == ["user", "assistant"]
    away = await asyncio.to_thread(shared_product.call, "tests.acceptance.programs.looking:status_of", "typed-away")
    assert away == "aborted"
