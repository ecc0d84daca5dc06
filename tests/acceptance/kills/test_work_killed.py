"""A worker killed while turns write files and run code or extensions: nothing is half or done twice, the turns go on.

All of it happens to one worker at once, since the wait for its lease is the same for all. An action whose worker dies
between its effect and its record: `tests/acceptance/parking/test_paused_actions.py`.
"""

import asyncio
import json
import os
import random
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.product import Product, wait_for
from tests.chaos.lines import Line, user_message

CODE = """
const first = await tools.count({});
await state.writeFile({path: '/made', content: `first ${first}`});
const said = await tools.linger_on({});
const second = await tools.count({});
return [first, said, second, await state.readFile({path: '/made'})];
"""
SCRIPTS = {
    "edited": 'call tool write {"path": "/plan", "content": "one\\ntwo\\n"} id=w\n'
    'call tool edit {"path": "/plan", "old_string": "one", "new_string": "ONE"} id=e\nsay: It says {result}.',
    "churned": "call tool churn {} id=c\nsay: It says {result}.",
    "extended": "call tool slow_work {} id=s\nsay: It says {result}.",
    "coded": f"call tool execute {json.dumps({'code': CODE})} id=x\nsay: It says {{result}}.",
}
AGENTS = {"edited": "scribe", "churned": "scribe", "extended": "extended", "coded": "coder"}


def beside(product: Product, function: str, argument: str) -> Any:
    return product.call(f"tests.acceptance.kills.beside:{function}", argument)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def ask(line: Line, script: str) -> str:
    assert await line.wait(lambda: line.is_open, seconds=20)
    return await line.ask([user_message(script)])


async def completed(line: Line, request: str) -> None:
    assert await line.wait(lambda: request in line.ended, seconds=60), line.room
    assert line.ended[request] == "completed"


@pytest.fixture
def guests() -> Iterator[list[int]]:
    """Processes of code that a test saw; should they survive it, they end with it."""
    found: list[int] = []
    yield found
    for pid in filter(is_alive, found):
        os.kill(pid, signal.SIGKILL)


async def test_a_worker_killed_at_work_leaves_nothing_half_and_nothing_twice(
    shared_product: Product, guests: list[int]
) -> None:
    product = shared_product
    rooms = {name: f"killed-{name}" for name in SCRIPTS}
    lines = {
        name: Line(
            name,
            room,
            product.url(f"/agents/{AGENTS[name]}/{room}?token={product.token('alice')}").replace("http", "ws", 1),
            random.Random(1),
        )
        for name, room in rooms.items()
    }
    assert await asyncio.to_thread(beside, product, "load", rooms["extended"]) == ["slow_work"]
    async with asyncio.timeout(120):
        try:
            requests = {name: await ask(line, SCRIPTS[name]) for name, line in lines.items()}
            await asyncio.to_thread(_kill_at_work, product, rooms, guests)
            for name, line in lines.items():
                await completed(line, requests[name])
        finally:
            await asyncio.gather(*(line.close() for line in lines.values()))
    _check_files(product, rooms)
    _check_extension(product, rooms["extended"], lines["extended"].text(requests["extended"]))
    _check_code(product, rooms["coded"], lines["coded"].text(requests["coded"]))


def _kill_at_work(product: Product, rooms: dict[str, str], guests: list[int]) -> None:
    marks = [f"held.{rooms['edited']}", f"churned.{rooms['churned']}", f"held.{rooms['coded']}"]
    for mark in marks:
        wait_for(partial(beside, product, "held", mark), what=mark)
    extended = rooms["extended"]
    wait_for(lambda: "/begun" in beside(product, "files", extended), what="the extension at work")
    at_work = beside(product, "held", marks[-1])
    guests += at_work["guests"]
    assert guests
    assert all(map(is_alive, guests))
    worker = product.workers[0]
    assert at_work["worker"] == worker.pid
    os.kill(worker.pid, signal.SIGKILL)  # itself alone, not what it has started
    assert worker.popen is not None
    worker.popen.wait()
    wait_for(lambda: not any(map(is_alive, guests)), what="the end of the code's process")
    worker.start()


def _check_files(product: Product, rooms: dict[str, str]) -> None:
    edited, churned = rooms["edited"], rooms["churned"]
    assert beside(product, "files", edited) == {"/plan": "ONE\ntwo\n"}
    assert beside(product, "calls", edited) == [
        ["write", 1, {"path": "/plan", "bytesWritten": 8, "lines": 2}],
        ["edit", 2, {"path": "/plan", "replaced": True, "lines": 2}],  # found done by the attempt that was cut
    ]
    assert beside(product, "changes", edited) == [["/plan", "created", None]]
    pair = beside(product, "files", churned)
    assert set(pair) == {"/one", "/other"}
    assert pair["/one"] == pair["/other"]
    numbers = pair["/one"].split()
    assert len(numbers) == 2_000
    assert len(set(numbers)) == 1
    assert int(numbers[0]) >= beside(product, "held", f"churned.{churned}")


def _check_extension(product: Product, room: str, said: str) -> None:
    assert "worked" in said
    assert beside(product, "calls", room) == [["slow_work", 2, "worked"]]
    ((name, calls),) = beside(product, "extensions", room)
    assert name == "slow"
    first = [["readFile", "/begun"], ["writeFile", "/begun"]]
    assert calls == [*first, first[0], ["writeFile", "/ended"]]


def _check_code(product: Product, room: str, said: str) -> None:
    assert "first 1" in said
    assert beside(product, "held", f"counted.{room}") == 2  # each of the two calls once
    ((status, calls),) = beside(product, "executions", room)
    assert status == "succeeded"
    assert [call for call in calls if call[0].startswith("tools.")] == [
        ["tools.count", 1],
        ["tools.linger_on", 2],
        ["tools.count", 1],
    ]
    ((_tool, attempt, output),) = beside(product, "calls", room)
    assert (attempt, output["value"]) == (2, [1, "back", 2, "first 1"])
