"""A call of a tool of an MCP server: what ours adds to the protocol's own client at the same server, on loopback.

The server runs as a process of its own and says back what it gets. "Ours" is the tool as a turn has it: input checked,
connection of the pool, result converted. The row of a call, which every tool's call has, is in `bench.files`.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.test import override_settings  # noqa: E402 - after the set-up

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, milliseconds, row  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up
from tools_app.core.mcp.servers import McpScope  # noqa: E402 - after the set-up
from tools_app.core.tool import ToolContext  # noqa: E402 - after the set-up
from tools_app.mcp.pool import Target, pool  # noqa: E402 - after the set-up
from tools_app.mcp.tools import mcp_tools  # noqa: E402 - after the set-up
from tools_app.models.mcp import McpServer  # noqa: E402 - after the set-up

SERVER = Path(__file__).parents[1] / "tests" / "mcp" / "odd_server.py"
ROUNDS, SMOKE_ROUNDS = 200, 5
ROUNDS_APART, WARM = 3, 3
TOGETHER = 20
START_SECONDS = 30.0
TEXT = "amber basil cedar"


async def times(call: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    """Seconds of each call, after the first ones."""
    found = []
    for number in range(rounds + WARM):
        began = time.perf_counter()
        await call()
        if number >= WARM:
            found.append(time.perf_counter() - began)
    return found


async def at_once(call: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    """Seconds of each call where several are under way, after the first round."""

    async def together() -> None:
        await asyncio.gather(*(call() for _ in range(TOGETHER)))

    return [seconds / TOGETHER for seconds in await times(together, max(3, rounds // TOGETHER))]


async def answering(port: int) -> None:
    """Wait until the server listens."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def context_of(name: str) -> ToolContext:
    """A call outside of any conversation."""
    return ToolContext(
        call_id="c",
        tool_name=name,
        user_id=None,
        agent="bench",
        instance_name="bench",
        turn_id="bench",
        attempt=1,
        idempotency_key="bench:c",
    )


async def measure(port: int, *, is_smoke: bool) -> list[Row]:
    """Call the same tool both ways, by turns of a whole series."""
    from mcp.client import Client  # noqa: PLC0415 - loaded with its first use, as in the product

    rounds = SMOKE_ROUNDS if is_smoke else ROUNDS
    url = f"http://127.0.0.1:{port}/mcp"
    await answering(port)
    server = await db(
        McpServer.objects.create, scope=McpScope.SITE, name="odd", transport="http", url=url, is_trusted=True
    )
    await pool().refresh(Target(server))
    await db(server.refresh_from_db)
    echo = next(each for each in mcp_tools([Target(server)]) if each.name.endswith("echo"))
    function: Any = echo.function

    async def ours() -> None:
        found = await function({"text": TEXT}, context_of(echo.name))
        assert TEXT in str(found), found

    async with Client(url) as client:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "by the protocol's own client": lambda: client.call_tool("echo", {"text": TEXT}),
            "by a tool of a turn": ours,
        }
        alone: dict[str, list[float]] = {name: [] for name in ways}
        spent: dict[str, float] = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS_APART):
            for name, way in ways.items():
                before = time.process_time()
                alone[name] += await times(way, rounds)
                spent[name] += time.process_time() - before
        together = {name: await at_once(way, rounds) for name, way in ways.items()}
    await pool().close()
    count = ROUNDS_APART * (rounds + WARM)
    cpu = {name: seconds / count * 1e3 for name, seconds in spent.items()}
    theirs, own = ways
    return [
        *(row(f"an MCP call {name}", "ms", milliseconds(found)) for name, found in alone.items()),
        *(Row(what=f"- its CPU here, {name}", unit="ms", median=found) for name, found in cpu.items()),
        Row(what="- CPU that the tool of a turn adds", unit="ms", median=cpu[own] - cpu[theirs]),
        *(row(f"{TOGETHER} at once {name}", "ms each", milliseconds(found)) for name, found in together.items()),
    ]


def run(options: Options) -> list[Row]:
    """Measure with a server of its own; returns the table's rows."""
    from thinkproject.run.supervisor import free_port  # noqa: PLC0415 - the rest of it is not needed

    port, folder = free_port(), tempfile.mkdtemp(prefix="thkb")
    process = subprocess.Popen([sys.executable, str(SERVER), "http", str(port), folder], stderr=subprocess.DEVNULL)
    try:
        with database(), override_settings(THINK_MCP_PRIVATE_NETWORKS=["127.0.0.0/8"]):
            return asyncio.run(measure(port, is_smoke=options.is_smoke))
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
