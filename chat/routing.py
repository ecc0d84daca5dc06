"""Socket routes, and the endpoint of MCP that stands in front of Django.

The path of a socket is parsed raw: in a decoded one `%2F` looks like a new segment.
"""

from typing import Any, cast

from channels.routing import URLRouter
from django.urls import re_path

from chat.errors import AgentNotFound
from chat.http.mcp.endpoint import McpEndpoint
from chat.http.usechat.consumer import UseChatConsumer
from chat.instances.addresses import parse_address
from chat.realtime.consumer import AgentConsumer, raw_path

__all__ = ["McpEndpoint", "websocket_application", "websocket_urlpatterns"]

_agents, _chats = AgentConsumer.as_asgi(), UseChatConsumer.as_asgi()


async def sockets(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve the socket of an instance, or the AI SDK's own at `…/chat`, as the HTTP transport's address is."""
    try:
        is_chat = parse_address(raw_path(scope)).tail == ("chat",)
    except AgentNotFound:
        is_chat = False
    await (_chats if is_chat else _agents)(scope, receive, send)


websocket_urlpatterns = [re_path(r"", cast("Any", sockets))]
"""Every path, for a `URLRouter`. The consumer accepts one that names no agent and closes it for good: clients retry a
refused upgrade for ever."""

websocket_application = URLRouter(websocket_urlpatterns)
"""All sockets, for the `websocket` entry of a `ProtocolTypeRouter`."""
