"""The protocol's client in TypeScript, by its authors, run by Deno."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from deno import find_deno_bin

from tests.acceptance.product import ROOT, Product
from tests.acceptance.programs.clients import endpoint

HERE: Final = Path(__file__).parent / "typescript"
DIST: Final = ROOT / "tests" / "clients" / "dist" / "programs"
FILES: Final = ("package.json", "deno.json", "deno.lock", "program.ts")
SECONDS: Final = 240


def _deno(*arguments: str) -> str:
    environ = {**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    command = [find_deno_bin(), *arguments]
    done = subprocess.run(command, cwd=DIST, env=environ, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def program() -> None:
    """The program with its packages, as the lock has them."""
    DIST.mkdir(parents=True, exist_ok=True)
    with (DIST.parent / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at once
        wanted = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()
        stamp = DIST / "stamp"
        if not stamp.exists() or stamp.read_text() != wanted:
            for name in FILES:
                shutil.copy(HERE / name, DIST / name)
            _deno("install", "--frozen")
            stamp.write_text(wanted)


@pytest.mark.usefixtures("program")
async def test_a_program_in_typescript_uses_an_agent(shared_product: Product) -> None:
    address, token = endpoint(shared_product), shared_product.token("erin")
    seen: dict[str, Any] = json.loads(
        await asyncio.to_thread(_deno, "run", "--quiet", "--allow-all", "program.ts", address, token)
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
