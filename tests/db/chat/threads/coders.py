"""A `ThreadsAgent` of Alice's with a scripted model, and its sockets. The fixtures are in `conftest.py`."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat.agent import declared
from chat.llm.scripted import ScriptedModel
from chat.think import ThreadAgent, ThreadsAgent

MODELS: dict[str, ScriptedModel] = {}
ROOT = "/agents/coders-under-test/desk"


@contextmanager
def served_coders() -> Iterator[None]:
    """Serve the orchestrator and its threads."""
    MODELS["current"] = ScriptedModel()

    class CoderUnderTest(ThreadAgent):
        """Writes code in one thread."""

        def get_model(self) -> ScriptedModel:
            return MODELS["current"]

    class CodersUnderTest(ThreadsAgent):
        """Keeps the threads."""

        thread_agent = CoderUnderTest

    yield
    for made in (CoderUnderTest, CodersUnderTest):
        declared.unregister(made)


class Desk:
    """One socket of the orchestrator: sends frames of threads, and reads those that come back."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_to(json.dumps({"type": kind, **fields}))

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """The frames up to the first of a kind."""
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(20):
            while not found or found[-1]["type"] != kind:
                frame = json.loads(await self.socket.receive_from(timeout=20))
                if not frame["type"].startswith("cf_agent"):  # those that every agent sends
                    found.append(frame)
        return found

    async def next(self, kind: str) -> dict[str, Any]:
        """The next frame of a kind."""
        return (await self.until(kind))[-1]

    async def done(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Send a frame, and wait until it is carried out; returns what came meanwhile."""
        await self.send(kind, **fields)
        await self.send("get_messages", threadId="nobody")
        found: list[dict[str, Any]] = []
        while not found or found[-1] != {"type": "sync", "threadId": "nobody", "messages": []}:
            found += await self.until("sync")
        return found[:-1]

    async def says_nothing_to(self, kind: str, **fields: Any) -> None:
        """Send a frame, and then one that is answered: nothing comes before that answer."""
        assert await self.done(kind, **fields) == []
