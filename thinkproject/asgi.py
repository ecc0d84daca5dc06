"""The ASGI application: HTTP to MCP or to Django, behind limits, static files and compression; sockets to agents."""

import os
from collections.abc import Awaitable, Callable
from typing import Any, cast

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
django_application = get_asgi_application()  # loads the apps, so it stands before what imports models

from chat.routing import McpEndpoint, websocket_urlpatterns  # noqa: E402 - after the apps
from thinkproject.web.body_limits import BodyLimits  # noqa: E402 - after the apps
from thinkproject.web.compression import Compression  # noqa: E402 - after the apps
from thinkproject.web.static_files import StaticFiles  # noqa: E402 - after the apps


async def unknown_socket(
    _scope: dict[str, Any],
    receive: Callable[[], Awaitable[Any]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Accept and close with 4404: a refused upgrade would make clients try again for ever."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4404})


application = ProtocolTypeRouter(
    {
        "http": BodyLimits(StaticFiles(Compression(McpEndpoint(django_application)))),
        "websocket": URLRouter([*websocket_urlpatterns, re_path(r"(?s)^.*$", cast("Any", unknown_socket))]),
    }
)
