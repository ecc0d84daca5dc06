"""How long servers may take to start and their tools to answer."""

from typing import Any

from tools_app.core.mcp.catalogue import CatalogueLimits, Listed, build_catalogue
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.mcp.pool import Target
from tools_app.mcp.tools import mcp_tools
from tools_app.mcp.transports import Way
from tools_app.models import McpServer


def seconds_of_a_call() -> float:
    listed = Listed(tools=[{"name": "add", "inputSchema": {"type": "object"}}])
    server = McpServer(id="mcp_1", name="sums", is_trusted=True, catalogue=build_catalogue(listed, CatalogueLimits()))
    return mcp_tools([Target(server, None)])[0].timeout_seconds


def test_a_call_may_take_the_time_of_the_setting_after_its_server_has_started(settings: Any) -> None:
    before = seconds_of_a_call()
    settings.THINK_MCP_CALL_SECONDS = 600.0
    assert seconds_of_a_call() == before + 540
    settings.THINK_MCP_START_SECONDS = 100.0
    assert seconds_of_a_call() == before + 580


def test_programs_have_more_time_to_start_than_addresses_to_answer(settings: Any) -> None:
    settings.THINK_MCP_START_SECONDS = 100.0
    assert Way(McpServerSpec(name="program", command="npx")).seconds == 100
    assert Way(McpServerSpec(name="address", url="https://mcp.example/mcp")).seconds == 15
