"""Run one tool call: the only place where a tool's exception becomes a result.

Sync functions run on the executor for user code, never on the loop and never on the database bridge.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from thinkproject.kernel.aio import call_tool_code
from tools_app.core.execution import to_json
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult
from tools_app.errors import ToolError, ToolTimeout

logger = logging.getLogger(__name__)


async def execute(tool: Tool, call: ToolCall, context: ToolContext) -> AsyncIterator[ToolProgress | ToolResult]:
    """Run the tool: any number of `ToolProgress`, then exactly one `ToolResult`, always last.

    Errors: none of the tool's; what it raises, a timeout, and a result JSON cannot carry are results the model sees.
    Cancelling the task cancels an async tool; a sync one goes on in its thread and its result is dropped.
    """
    started = time.monotonic()
    result = ToolResult(output=None)
    yields = inspect.isasyncgenfunction(tool.function)
    try:
        async with asyncio.timeout(tool.timeout_seconds):
            async for item in _run(tool, call, context):
                result = ToolResult(output=to_json(item))
                if yields:
                    yield ToolProgress(output=result.output)
    except TimeoutError:
        message = f"Tool {tool.name!r} did not finish within {tool.timeout_seconds:g} s."
        result = ToolResult(output=ToolTimeout(message).message, is_error=True)
    except ToolError as error:
        result = ToolResult(output=error.message, is_error=True)
    except Exception as error:  # the executor is where a tool's exception becomes a result
        logger.warning(
            "tool failed",
            exc_info=True,
            extra={"action": "tool_failed", "tool": tool.name, "call_id": call.call_id},
        )
        result = ToolResult(output=str(error) or type(error).__name__, is_error=True)
    elapsed = round((time.monotonic() - started) * 1000)
    yield ToolResult(output=result.output, is_error=result.is_error, duration_ms=elapsed)


async def _run(tool: Tool, call: ToolCall, context: ToolContext) -> AsyncIterator[Any]:
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
