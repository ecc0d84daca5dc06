"""Tools that run in another process: the turn waits for them without a worker, or does not wait at all."""

from chat.durable_tools.calling import make_async_tool, make_durable_tool, make_durable_tools
from chat.durable_tools.declared import create_tool_execution_effect
from chat.durable_tools.jobs import ToolRun, check_async_job_status, wait_for_tool_result

__all__ = [
    "ToolRun",
    "check_async_job_status",
    "create_tool_execution_effect",
    "make_async_tool",
    "make_durable_tool",
    "make_durable_tools",
    "wait_for_tool_result",
]
