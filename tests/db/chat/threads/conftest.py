"""Alice's coders: the agents, sockets to them, and their verbs without a socket."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.think import ThreadsHandle
from tests.db.chat.notes import opener
from tests.db.chat.threads.coders import ROOT, Desk, served_coders

OpenDesk = Callable[..., Awaitable[Desk]]


@pytest.fixture
def coders(settings: Any) -> Iterator[None]:
    settings.THINK_STREAM_IDLE_SECONDS = 0.1
    with served_coders():
        yield


@pytest.fixture
async def open_desk(alice: User, coders: None) -> AsyncIterator[OpenDesk]:
    """Opens a socket of the orchestrator, past both lists."""
    async with opener(alice) as connect:

        async def go(path: str = ROOT, user: User | None = None) -> Desk:
            desk = Desk(await connect(path, user))
            await desk.until("workspaces")
            return desk

        yield go


@pytest.fixture
def coders_key(alice: User) -> InstanceKey:
    return InstanceKey(owner_id=alice.pk, agent="coders-under-test", name="desk")


@pytest.fixture
def threads(coders_key: InstanceKey, coders: None) -> ThreadsHandle:
    return ThreadsHandle(coders_key, "coder-under-test")
