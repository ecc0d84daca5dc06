"""Rooms of Alice's with MCP servers, and a pool of connections that is closed at the end."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from tests.db.chat.mcp_servers.agents import DECLARED
from tests.db.chat.mcp_servers.serving import ODD
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room
from thinkproject.kernel.aio import db
from tools_app.mcp.pool import McpPool, pool
from tools_app.models.mcp import McpServer


@pytest.fixture
def make_connected_room(transactional_db: None) -> Callable[..., Room]:
    """Rooms of Alice's."""
    DECLARED.clear()
    user = User.objects.create_user("alice", password="alice-password")

    def make(agent: str = "connected", name: str = "room") -> Room:
        room = Room(InstanceKey(owner_id=user.pk, agent=agent, name=name))
        MODELS["current"] = room.model
        return room

    return make


@pytest.fixture
async def connections(transactional_db: None) -> AsyncIterator[McpPool]:
    """The connections of this test's loop."""
    yield pool()
    await pool().close()


@pytest.fixture
def odd(tmp_path: Path) -> list[str]:
    """The command of the odd server, which notes what happens in `tmp_path`."""
    return [sys.executable, str(ODD), "stdio", str(tmp_path)]


def count(folder: Path, name: str) -> int:
    """How often something happened at the odd server."""
    path = folder / name
    return len(path.read_text()) if path.exists() else 0


async def until(condition: Callable[[], Any]) -> None:
    """Wait for what must come. The condition may be async."""
    async with asyncio.timeout(20):
        while True:
            found = condition()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.02)


async def only_server() -> McpServer:
    return await db(lambda: McpServer.objects.get())


def tools_offered(room: Room) -> list[Any]:
    """Names of the tools that the last request declared."""
    return [item["name"] for item in room.model.requests[-1].get("tools", [])]
