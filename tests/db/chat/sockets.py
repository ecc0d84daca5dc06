"""Sockets that tests open, each past its handshake, and that are closed at the end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.db.chat.test_access_sockets import connection, cookie_of
from tests.db.chat.test_sockets_at_the_end import frames_until

Open = Callable[[User, str], Awaitable[Any]]
"""Opens a socket of a user's at a path below `/agents`, such as `assistant/talk`."""


@asynccontextmanager
async def opening_sockets() -> AsyncIterator[Open]:
    """Yield what opens sockets."""
    opened: list[Any] = []

    async def go(user: User, path: str) -> Any:
        made = connection(f"/agents/{path}", cookie=await sync_to_async(cookie_of)(user))
        connected, _ = await made.connect(timeout=5)
        assert connected
        opened.append(made)
        await frames_until(made, "cf_agent_mcp_servers")
        return made

    yield go
    for made in opened:
        await made.disconnect()
