"""Connects to MCP servers in a worker: to read what one offers, and one of its contents for a person.

Failures of connections are noted in the server's row.
"""

import asyncio

from fibers.context import FiberContext
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.errors import McpServerNotFound, McpUnavailable
from tools_app.mcp import health, rows
from tools_app.mcp.conf import CONNECT_SECONDS, mcp_settings
from tools_app.mcp.contents import read_content
from tools_app.mcp.pool import Target, pool


async def connect_server(context: FiberContext) -> None:
    """Read a server's catalogue; nothing where it was removed meanwhile."""
    try:
        server = await db(rows.find_server, str(context.payload["server_id"]))
    except McpServerNotFound:
        return
    await db(health.note_connecting, server.pk)
    try:
        await pool().refresh(Target(server, context.payload.get("user_id")), insists=True)
    except McpUnavailable:
        return  # its row and the log say so


async def read_server(context: FiberContext) -> JSONObject:
    """Read a content. Shape: as `tools_app.mcp.contents.read_content`; of a failure `{"error": words}`."""
    target_id, user_id = str(context.payload["server_id"]), context.payload.get("user_id")
    try:
        server = await db(rows.find_server, target_id)
        async with asyncio.timeout(CONNECT_SECONDS + mcp_settings.call_seconds):
            return await read_content(Target(server, user_id), context.payload["wanted"])
    except (McpServerNotFound, McpUnavailable) as error:
        return {"error": error.message}
    except TimeoutError:
        return {"error": McpUnavailable().message}
