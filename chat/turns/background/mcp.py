"""Connects to an MCP server and reads what it offers, in a worker. What failed is noted in the server's row."""

from fibers.context import FiberContext
from thinkproject.kernel.aio import db
from tools_app.errors import McpServerNotFound, McpUnavailable
from tools_app.mcp import rows
from tools_app.mcp.pool import Target, pool


async def connect_server(context: FiberContext) -> None:
    """Read a server's catalogue; nothing where it was removed meanwhile."""
    try:
        server = await db(rows.find_server, str(context.payload["server_id"]))
    except McpServerNotFound:
        return
    await db(rows.note_connecting, server.pk)
    try:
        await pool().refresh(Target(server, context.payload.get("user_id")), insists=True)
    except McpUnavailable:
        return  # its row and the log say so
