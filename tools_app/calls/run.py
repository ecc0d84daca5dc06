"""Run one tool call: the only place where a tool's exception becomes a result.

The tool runs in a task of its own, so that one that ignores its cancellation does not hold up its turn: after a grace
it is left behind, and what it still returns or reports counts for nothing. Sync functions run on the executor for user
code, never on the loop and never on the database bridge.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from thinkproject.kernel.aio import call_tool_code
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.outages import is_outage
from tools_app.core.call_check import to_json
from tools_app.core.current_call import enter_call
from tools_app.core.guard.reach import enter
from tools_app.core.guard.rules import MAX_SOURCES, SeenText
from tools_app.core.origins import UNTRUSTED, Origin
from tools_app.core.permissions.file_rules import FileRules, enter_file_rules
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult, details_of
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import DatabaseAway, ToolError, ToolTimeout

logger = logging.getLogger(__name__)

REPORT_SECONDS: Final = 0.1
"""Reports of `ToolContext.progress` are shown at most this often; the last one of a burst always is."""

ABORT_SECONDS: Final = 0.25
"""How long a tool may take to end once it is cancelled."""

CANCELLED: Final = "The tool cancelled itself."
_left_behind: set["asyncio.Task[None]"] = set()  # so that they are not collected while they run


async def execute(tool: Tool, call: ToolCall, context: ToolContext) -> AsyncIterator[ToolProgress | ToolResult]:
    """Run the tool: any number of `ToolProgress`, then exactly one `ToolResult`, always last.

    Errors: none of the tool's; what it raises, a timeout, and a result JSON cannot carry are results the model sees.
    `DatabaseAway` where the database was away and the context repeats such attempts.
    Cancelling the task cancels an async tool; a sync one goes on in its thread and its result is dropped. Either way
    it takes `ABORT_SECONDS` at most.
    """
    started = time.monotonic()
    run = _Run(tool, call, context)
    try:
        try:
            async with asyncio.timeout(tool.timeout_seconds):
                async for progress in run.progress():
                    yield progress
        except TimeoutError:
            message = f"Tool {tool.name!r} did not finish within {tool.timeout_seconds:g} s."
            result = run.failure(ToolTimeout(message).message)
        else:
            result = run.outcome()
    finally:
        await run.stop()
    yield replace(result, duration_ms=round((time.monotonic() - started) * 1000))


class _Run:
    """One call of a tool: what it has given and reported so far, and the task in which it runs."""

    def __init__(self, tool: Tool, call: ToolCall, context: ToolContext) -> None:
        self._tool = tool
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._arrivals: asyncio.Queue[ToolProgress | None] = asyncio.Queue()
        self._output: JSONValue = None
        self._title = ""
        self._metadata: JSONObject = {}
        self._media: tuple[Media, ...] = ()
        self._has_output = False  # of a tool that yields
        self._is_over = False
        self._texts: list[SeenText] = []  # of others, in what it returns
        self._guard = context.guard
        self._repeats_outages = context.repeats_outages
        self._timer: asyncio.TimerHandle | None = None
        self._reported_at = self._loop.time() - REPORT_SECONDS
        self._task = asyncio.create_task(self._work(replace(context, reporter=self._report, noter=self.note)))

    async def progress(self) -> AsyncIterator[ToolProgress]:
        """The reports and outputs to show, until the tool has ended."""
        while (item := await self._arrivals.get()) is not None:
            yield item

    def outcome(self) -> ToolResult:
        """The result of a tool that has ended. Errors: those that are no `Exception`, as a park."""
        try:
            self._task.result()
        except asyncio.CancelledError:
            return self.failure(CANCELLED)
        except ToolError as error:
            return self.failure(error.message)
        except Exception as error:  # the executor is where a tool's exception becomes a result
            if self._repeats_outages and is_outage(error):
                raise DatabaseAway(error) from error
            extra = {"action": "tool_failed", "tool": self._tool.name, "call_id": self._call.call_id}
            logger.warning("tool failed", exc_info=True, extra=extra)
            return self.failure(str(error) or type(error).__name__)
        self._note_own()
        return ToolResult(output=self._output, details=self._details(), media=self._media)

    def failure(self, text: str) -> ToolResult:
        """The result of a tool that failed; what it reported stays with it."""
        self._note_own()
        return ToolResult(output=text, is_error=True, details=self._details())

    def note(self, origin: Origin, source: str) -> None:
        """Take the origin of a text that the call returns, from any thread; the conversation's guard learns it now."""
        text = SeenText(origin, source)
        if text in self._texts or len(self._texts) > MAX_SOURCES:
            return
        self._texts.append(text)
        if self._guard is not None:
            self._guard.note(origin, text.source)

    @property
    def session_id(self) -> str:
        """The conversation of the call; empty outside of one."""
        return "" if self._guard is None else self._guard.session_id

    def written(self) -> Origin | None:
        """The origin of files that the call writes: its tool's own, or that of strangers once it may pass such on."""
        if self._tool.origin in UNTRUSTED:
            return self._tool.origin
        return Origin.FILE if self.texts() else None

    def texts(self) -> list[SeenText]:
        """The texts of others that the call may pass on: what it has read, and what the conversation holds."""
        held = [] if self._guard is None else self._guard.texts()
        return [*held, *(text for text in list(self._texts) if text.origin in UNTRUSTED and text not in held)]

    def _note_own(self) -> None:
        if self._tool.origin in UNTRUSTED and all(text.origin is not self._tool.origin for text in self._texts):
            self.note(self._tool.origin, self._tool.title or self._tool.name)

    async def stop(self) -> None:
        """End the tool, and whatever it reports from now on. Waits for a grace."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task.done():
            return
        _left_behind.add(self._task)
        self._task.add_done_callback(_forget)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=ABORT_SECONDS)
        if not self._task.done():
            extra = {"action": "tool_left_behind", "tool": self._tool.name, "call_id": self._call.call_id}
            logger.warning("a tool ignores that it was cancelled", extra=extra)

    async def _work(self, context: ToolContext) -> None:
        enter(self)
        enter_call(context)
        try:
            enter_file_rules(await _file_rules(self._tool, context))
            async for item in _values(self._tool, self._call, context):
                self._take(item)
        finally:
            self._arrivals.put_nowait(None)

    def _take(self, item: Any) -> None:
        given = item if isinstance(item, ToolOutput) else ToolOutput(value=item)
        output, metadata = to_json(given.value), to_json(given.metadata)
        if not isinstance(metadata, dict) or not all(isinstance(media, Media) for media in given.media):
            raise TypeError("a ToolOutput has an object as metadata, and Media as media")
        self._output, self._media = output, tuple(given.media)
        self._title = str(given.title) or self._title
        self._metadata = metadata or self._metadata
        if inspect.isasyncgenfunction(self._tool.function):
            self._has_output = True
            self._show()

    def _report(self, title: str | None, metadata: JSONObject | None) -> None:
        """Take a report, from any thread."""
        words = None if title is None else str(title)
        plain = None if metadata is None else to_json(metadata)
        if plain is not None and not isinstance(plain, dict):
            raise TypeError("the metadata of a report is an object")
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._note(words, plain)
        else:
            with suppress(RuntimeError):  # the loop is closed: the call is over
                self._loop.call_soon_threadsafe(self._note, words, plain)

    def _note(self, title: str | None, metadata: JSONObject | None) -> None:
        if self._is_over or self._task.done():
            return
        self._title = self._title if title is None else title
        self._metadata = self._metadata if metadata is None else metadata
        if self._timer is None:
            self._timer = self._loop.call_at(self._reported_at + REPORT_SECONDS, self._show_report)

    def _show_report(self) -> None:
        self._timer = None
        self._reported_at = self._loop.time()
        if not self._is_over and not self._task.done():
            self._show()

    def _show(self) -> None:
        details = self._details()
        self._arrivals.put_nowait(ToolProgress(output=self._output, details=details, has_output=self._has_output))

    def _details(self) -> JSONObject:
        return details_of(title=self._title, metadata=self._metadata, origins=list(self._texts))


def _forget(task: "asyncio.Task[None]") -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # read, so that it is not reported as never retrieved


async def _file_rules(tool: Tool, context: ToolContext) -> FileRules | None:
    """The rules for the files that code of others reaches; nothing for tools whose calls are judged by their input."""
    if context.permissions is None or not tool.runs_code:
        return None
    return await context.permissions.for_files(is_approved=context.is_approved)


async def _values(tool: Tool, call: ToolCall, context: ToolContext) -> AsyncIterator[Any]:
    """Call whatever kind of function the tool is; a plain one yields its one value."""
    function = tool.function
    if function is None:
        raise ToolError(f"Tool {tool.name!r} is run by a client.")
    arguments = tool.parse(call.input)
    if tool.context_parameter:
        arguments[tool.context_parameter] = context
    if inspect.isasyncgenfunction(function):
        async for item in function(**arguments):
            yield item
    else:
        yield await call_tool_code(function, **arguments)
