"""Tools that run in this client: their declarations for the model, and their execution."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from chat.client.turn import Call
from chat.core.wire.frames import ClientTool, ToolResult
from tools_app.calls.run import execute
from tools_app.core import tool_calls
from tools_app.core.tool import Tool, ToolContext, tool
from tools_app.errors import ToolDeclarationInvalid


class ClientTools:
    """Async functions by the name under which the model calls them.

    The schema comes from the signature and the docstring, as for tools of the server. Errors: `ToolDeclarationInvalid`.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        for name, function in functions.items():
            if not inspect.iscoroutinefunction(function):
                raise ToolDeclarationInvalid(f"Tool {name!r}: a tool of a client is an async function")
        self._tools: dict[str, Tool] = {name: tool(name=name)(function) for name, function in functions.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    @property
    def declared(self) -> tuple[ClientTool, ...] | None:
        """The tools as a request lists them; `None` without tools."""
        found = self._tools.values()
        tools = [ClientTool(name=t.name, description=t.description, parameters=t.input_schema) for t in found]
        return tuple(tools) or None

    async def run(self, call: Call) -> ToolResult:
        """Run one call. A failure, a timeout or an invalid result becomes an error result for the model."""
        result = await self._result(call)
        outcome: dict[str, Any] = {"state": "output-available", "output": result.output}
        if result.is_error:
            outcome = {"state": "output-error", "error_text": str(result.output)}
        return ToolResult(
            tool_call_id=call.call_id,
            tool_name=call.tool_name,
            auto_continue=True,
            client_tools=self.declared,
            **outcome,
        )

    async def _result(self, call: Call) -> tool_calls.ToolResult:
        asked = tool_calls.ToolCall(call_id=call.call_id, tool_name=call.tool_name, input=call.input)
        context = ToolContext(
            call_id=call.call_id,
            tool_name=call.tool_name,
            user_id=None,
            agent="",
            instance_name="",
            turn_id="",
            attempt=1,
            idempotency_key=call.call_id,
        )
        result = tool_calls.ToolResult(output=None)
        async for item in execute(self._tools[call.tool_name], asked, context):
            if isinstance(item, tool_calls.ToolResult):
                result = item
        return result
