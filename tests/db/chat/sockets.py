"""Sockets that tests open, each past its handshake, and that are closed at the end."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client

from chat.core.wire import frames
from chat.routing import websocket_urlpatterns

Open = Callable[[User, str], Awaitable[Any]]
"""Opens a socket of a user's at a path below `/agents`, such as `assistant/talk`."""


@asynccontextmanager
async def opening_sockets() -> AsyncIterator[Open]:
    """Yield what opens sockets."""
    opened: list[Any] = []

    async def go(user: User, path: str) -> Any:
        made = connection(f"/agents/{path}", cookie=await sync_to_async(cookie_of)(user))
        connected, _ = await made.connect(timeout=15)
        assert connected
        opened.append(made)
        await frames_until(made, "cf_agent_mcp_servers")
        return made

    yield go
    for made in opened:
        await made.disconnect()


def connection(path: str, *, cookie: str = "", query: str = "", origin: str = "http://testserver") -> Any:
    headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
    if cookie:
        headers.append((b"cookie", f"{django_settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    made = WebsocketCommunicator(URLRouter(websocket_urlpatterns), path + (f"?{query}" if query else ""), headers)
    made.scope["raw_path"] = path.encode()
    return made


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    value: str = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    return value


async def answered(socket: Any) -> list[str]:
    """What a socket of a conversation is sent before it answers a ping: frames are handled one after another."""
    await socket.send_to(text_data=json.dumps({"type": "think_ping"}))
    found: list[str] = []
    while (text := await socket.receive_from(timeout=15)) != frames.PONG:
        found.append(text)
    return found


async def received(socket: Any, seconds: float = 0.3) -> list[str]:
    """What comes until nothing has come for a while: for what must not come."""
    found = []
    while not await socket.receive_nothing(timeout=seconds):
        found.append((await socket.receive_output(timeout=1)).get("text", ""))
    return found


async def frames_until(socket: Any, kind: str) -> list[dict[str, Any]]:
    """Frames up to the first of a kind: a frame's type, or `done`."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(15):
        while True:
            found.append(json.loads(await socket.receive_from(timeout=10)))
            if found[-1]["type"] == kind or (kind == "done" and found[-1].get("done")):
                return found


async def chunks_until(socket: Any, body: str) -> list[dict[str, Any]]:
    """Frames with chunks, up to one with this chunk."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["body"] != body:
        found += [frame for frame in await frames_until(socket, "cf_agent_use_chat_response") if "seq" in frame]
    return found
