"""Calls tools as a turn does: through the schema, with a context."""

from typing import Any

from tools_app.core.tool import Tool, ToolContext


async def call(tool: Tool, *, attempt: int = 1, **given: Any) -> Any:
    """Validate the input of a model, and run the tool."""
    arguments = tool.parse(given)
    if tool.context_parameter:
        arguments[tool.context_parameter] = ToolContext(
            call_id="call-1",
            tool_name=tool.name,
            user_id=None,
            agent="a",
            instance_name="i",
            turn_id="t",
            attempt=attempt,
            idempotency_key="key",
        )
    return await tool(**arguments)
