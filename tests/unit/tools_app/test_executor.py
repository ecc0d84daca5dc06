"""The executor: what a tool gives and reports while it runs, and how it ends when it does not want to."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tools_app.calls import run as executor
from tools_app.calls.run import execute
from tools_app.core.tool import Tool, ToolContext, tool
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import ToolError

CONTEXT = ToolContext(
    call_id="c",
    tool_name="t",
    user_id=None,
    agent="a",
    instance_name="i",
    turn_id="t",
    attempt=1,
    idempotency_key="k",
)


async def run(item: Tool, **given: Any) -> tuple[list[ToolProgress], ToolResult]:
    shown: list[ToolProgress] = []
    call = ToolCall(call_id="c", tool_name=item.name, input=given)
    async for each in execute(item, call, CONTEXT):
        if isinstance(each, ToolResult):
            return shown, each
        shown.append(each)
    raise AssertionError("no result")


async def test_a_tool_that_yields_shows_title_and_metadata_and_the_last_ones_stay() -> None:
    @tool
    async def walk() -> AsyncIterator[Any]:
        """Walk."""
        yield ToolOutput(value=1, title="One", metadata={"step": 1})
        yield 2
        yield ToolOutput(value=3, metadata={"step": 3})

    shown, result = await run(walk)
    assert [(item.output, item.details) for item in shown] == [
        (1, {"title": "One", "metadata": {"step": 1}}),
        (2, {"title": "One", "metadata": {"step": 1}}),
        (3, {"title": "One", "metadata": {"step": 3}}),
    ]
    assert (result.output, result.details) == (3, {"title": "One", "metadata": {"step": 3}})


async def test_a_plain_tool_may_return_words_for_people_and_media() -> None:
    picture = Media(data=b"\x89PNG", name="plot.png")

    @tool
    def plot() -> ToolOutput:
        """Plot."""
        return ToolOutput(value={"points": 3}, title="A plot", media=[picture])

    shown, result = await run(plot)
    assert shown == []
    assert (result.output, result.details, result.media) == ({"points": 3}, {"title": "A plot"}, (picture,))


@pytest.mark.parametrize("is_sync", [True, False])
async def test_reports_are_throttled_and_the_last_one_is_in_the_result(is_sync: bool) -> None:
    def work(context: ToolContext) -> str:
        for number in range(1_000):
            context.progress(title=f"File {number}")
        context.progress(metadata={"files": 1_000})
        return "done"

    async def work_async(context: ToolContext) -> str:
        return work(context)

    shown, result = await run(tool(work if is_sync else work_async))
    assert len(shown) < 100
    assert all(not item.has_output for item in shown)
    assert (result.output, result.details) == ("done", {"title": "File 999", "metadata": {"files": 1_000}})


async def test_a_report_is_shown_while_the_tool_runs() -> None:
    may_end = asyncio.Event()

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress(title="Half")
        await may_end.wait()
        return "done"

    call = ToolCall(call_id="c", tool_name="work", input={})
    items = execute(work, call, CONTEXT)
    first = await anext(items)
    assert first == ToolProgress(output=None, details={"title": "Half"}, has_output=False)
    may_end.set()
    assert isinstance(await anext(items), ToolResult)


async def test_reports_after_the_end_are_ignored() -> None:
    kept: list[Callable[..., None]] = []

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        kept.append(context.progress)
        return "done"

    shown, result = await run(work)
    kept[0](title="Late")
    await asyncio.to_thread(kept[0], title="Later")
    await asyncio.sleep(0)
    assert (shown, result.details) == ([], {})


async def test_a_failed_call_keeps_what_it_reported() -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress(title="Half")
        raise ToolError("broke")

    _, result = await run(work)
    assert (result.output, result.is_error, result.details) == ("broke", True, {"title": "Half"})


@pytest.mark.parametrize("metadata", [{"x": object()}, ["no", "object"]])
async def test_a_report_that_json_cannot_carry_fails_the_call(metadata: Any) -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress(metadata=metadata)
        return "done"

    _, result = await run(work)
    assert result.is_error


async def test_a_tool_that_ignores_its_timeout_is_left_behind() -> None:
    may_end = asyncio.Event()

    @tool(timeout_seconds=0.01)
    async def deaf() -> str:
        """Ignore."""
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    _, result = await run(deaf)
    assert (result.is_error, result.output) == (True, "Tool 'deaf' did not finish within 0.01 s.")
    (left,) = executor._left_behind
    may_end.set()
    await left
    assert not executor._left_behind


async def test_a_tool_that_ignores_a_stop_does_not_hold_it_up() -> None:
    may_end, runs = asyncio.Event(), asyncio.Event()

    @tool
    async def deaf() -> str:
        """Ignore."""
        runs.set()
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    stopped = asyncio.create_task(run(deaf))
    await runs.wait()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    (left,) = executor._left_behind
    assert not left.done()
    may_end.set()
    await left


async def test_a_sync_tool_that_goes_on_after_a_stop_is_dropped() -> None:
    may_end, runs = threading.Event(), threading.Event()

    @tool
    def deaf() -> str:
        """Go on."""
        runs.set()
        may_end.wait(10)
        return "late"

    stopped = asyncio.create_task(run(deaf))
    await asyncio.to_thread(runs.wait, 10)
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    may_end.set()


async def test_a_tool_that_cancels_itself_has_failed() -> None:
    @tool
    async def odd() -> str:
        """Cancel."""
        raise asyncio.CancelledError

    _, result = await run(odd)
    assert (result.is_error, result.output) == (True, executor.CANCELLED)


async def test_a_timeout_of_the_tools_own_is_told_apart() -> None:
    @tool
    async def slow() -> str:
        """Time out."""
        raise TimeoutError("the other side is silent")

    _, result = await run(slow)
    assert result.output == "the other side is silent"


async def test_title_and_metadata_are_bounded() -> None:
    @tool
    async def work() -> ToolOutput:
        """Work."""
        return ToolOutput(title="two\nlines " + "x" * 500, metadata={"log": "y" * 100_000, "n": 1})

    _, result = await run(work)
    assert result.details["title"].startswith("two lines xxx")
    assert len(result.details["title"]) == 200
    assert result.details["metadata"]["n"] == 1
    assert len(result.details["metadata"]["log"]) < 16_000
