"""Rules of `.gitignore` that take long are bounded, end with the call that wanted them, and cost their own person."""

import asyncio
import time

import pytest

from tests.unit.tools_app.shell.conftest import CONTEXT
from thinkproject.kernel.threads import acting_for
from tools_app.calls.run import execute
from tools_app.core.files.gitignore import MAX_RULES, IgnoreRules
from tools_app.core.files.workspace import MakeDirectory, Put
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.errors import FileFailed
from tools_app.file_tools.finding import create_list_tool
from tools_app.workspace import ignoring
from tools_app.workspace.ignoring import searches
from tools_app.workspace.stores.memory import MemoryWorkspace

SLOW = "\n".join(f"*a*{number}*b*" for number in range(20_000))
NAME = "a1b" * 80


async def filled(text: str, files: int = 4_000) -> MemoryWorkspace:
    workspace = MemoryWorkspace()
    puts = [Put(path=f"/d/{NAME}{number}", content=b"") for number in range(files)]
    await workspace.apply([MakeDirectory(path="/d"), Put(path="/.gitignore", content=text.encode()), *puts])
    return workspace


async def until(wanted: bool) -> None:
    async with asyncio.timeout(20):
        while bool(searches._running) is not wanted:  # noqa: ASYNC110 - of threads
            await asyncio.sleep(0.01)


async def test_a_search_ends_when_its_rules_take_too_long() -> None:
    workspace = await filled(SLOW)
    before = time.process_time()
    with pytest.raises(FileFailed, match=r"\.gitignore files here take too long"):
        await workspace.glob("**/*", ignored=False)
    assert time.process_time() - before < 3 * ignoring.SECONDS
    assert len(await workspace.glob("**/*")) == 4_002


async def test_a_page_of_a_directory_ends_too_and_off_the_loop() -> None:
    workspace = await filled(SLOW)
    tool = create_list_tool(workspace)
    call = ToolCall(call_id="c", tool_name="list", input={"path": "/d", "limit": 1_000})
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.05)
            beats += 1

    beating = asyncio.create_task(beat())
    [result] = [item async for item in execute(tool, call, CONTEXT)]
    beating.cancel()
    assert isinstance(result, ToolResult)
    assert ".gitignore files here take too long" in str(result.output)
    assert beats > 5


async def test_a_search_that_is_given_up_ends_at_once() -> None:
    workspace = await filled(SLOW)
    task = asyncio.create_task(workspace.glob("**/*", ignored=False))
    await until(True)
    before = time.process_time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(False)
    assert time.process_time() - before < ignoring.SECONDS / 2


async def test_one_person_has_one_search_at_a_time_and_others_do_not_wait() -> None:
    slow, quick = await filled(SLOW), await filled("*.log")
    with acting_for("mallory"):
        tasks = [asyncio.create_task(slow.glob("**/*", ignored=False)) for _ in range(10)]
    await until(True)
    assert searches._by_user == {"mallory": 1}
    with acting_for("alice"):
        assert len(await quick.glob("**/*", ignored=False)) == 4_002
    assert not any(task.done() and not task.exception() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(False)


def test_rules_are_bounded_over_all_files() -> None:
    lines = "\n".join(f"name{number}" for number in range(MAX_RULES - 1))
    rules = IgnoreRules.empty().with_file("/", lines)
    for number in range(20):
        rules = rules.with_file(f"/{number}", f"first{number}\nsecond")
    assert rules.ignores("/name7", is_directory=False)
    assert rules.ignores("/0/first0", is_directory=False)
    assert not rules.ignores("/0/second", is_directory=False)
    assert not rules.ignores("/1/first1", is_directory=False)


def test_comments_and_blank_lines_are_no_rules() -> None:
    rules = IgnoreRules.empty().with_file("/", "# a comment\n\n" * MAX_RULES + "secret")
    assert rules.ignores("/secret", is_directory=False)
