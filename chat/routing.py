"""Socket routes, and the endpoint of MCP that stands in front of Django.

The path of a socket is parsed raw by the consumer: in a decoded one `%2F` looks like a new segment.
"""

from channels.routing import URLRouter
from django.urls import re_path

from chat.http.mcp.endpoint import McpEndpoint
from chat.realtime.consumer import AgentConsumer

__all__ = ["McpEndpoint", "websocket_application", "websocket_urlpatterns"]

websocket_urlpatterns = [re_path(r"", AgentConsumer.as_asgi())]
"""Every path, for a `URLRouter`. The consumer accepts one that names no agent and closes it for good: clients retry a
refused upgrade for ever."""

websocket_application = URLRouter(websocket_urlpatterns)
"""All sockets, for the `websocket` entry of a `ProtocolTypeRouter`."""
