"""Agents whose turns wait at a gate, one for each word of concurrency. Importing this module serves them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from chat.agent.values.turns import SavedTurn
from chat.core.context.sent_note import NOTE
from chat.core.model.language_model import ModelEvent, ModelRequest, TextContent, UserMessage
from chat.llm.scripted import ScriptedModel
from chat.think import ChatResponse, TurnContext, tool
from tests.db.chat.turns.agents.everyday import SEEN, Plain

GATES: dict[str, asyncio.Event] = {}
"""`open` lets turns go on; `reached` is set when one stands before it. Made by `gate`."""

INSIDE: dict[str, Any] = {}
"""What `Inside` does in its turn, and what came of it."""


@asynccontextmanager
async def gate() -> AsyncIterator[asyncio.Event]:
    """Turns stop after their begin until the event that this gives is set."""
    GATES["open"], GATES["reached"] = asyncio.Event(), asyncio.Event()
    try:
        yield GATES["open"]
    finally:
        GATES.pop("open").set()
        GATES.clear()


async def reached() -> None:
    async with asyncio.timeout(20):
        await GATES["reached"].wait()


class Gated(Plain):
    """Waits at the gate, queues."""

    async def before_turn(self, context: TurnContext) -> None:
        SEEN.append(("before_turn", context))
        if "open" in GATES:
            GATES["reached"].set()
            await GATES["open"].wait()

    def on_chat_response(self, response: ChatResponse) -> None:
        SEEN.append(("on_chat_response", response))


class Several(Gated):
    """Keeps several histories."""

    keeps_sessions = True


class SeveralLatest(Several):
    message_concurrency = "latest"


class Latest(Gated):
    message_concurrency = "latest"


class Merge(Gated):
    message_concurrency = "merge"


class Drop(Gated):
    message_concurrency = "drop"


class Debounce(Gated):
    message_concurrency = {"strategy": "debounce", "debounceMs": 5_000}


class Inside(Plain):
    """Does something with its own conversation while its turn runs."""

    def get_tools(self) -> list[Any]:
        async def act_in_turn() -> str:
            """Do what the test wants."""
            INSIDE["said"] = await INSIDE["act"](self)
            return "done"

        return [tool(act_in_turn)]


class Follower(Plain):
    """Goes on after its first answer."""

    async def on_chat_response(self, response: ChatResponse) -> None:
        SEEN.append(("on_chat_response", response))
        if not response.continuation:
            SEEN.append(("went on", await self.continue_last_turn()))


class Endless(ScriptedModel):
    """Says three words and tells `spoke`; then it says nothing more, until it is stopped."""

    def __init__(self, spoke: asyncio.Event) -> None:
        super().__init__("stream 3 words\nwait 600 s\nsay: Never.")
        self.spoke = spoke

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        words = 0
        async for event in super().stream(request):
            yield event
            words += 1
            if words == 3:
                self.spoke.set()


class Quiet:
    """A callback that keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def on_start(self, request_id: str) -> None:
        self.sent.append("start")

    def on_event(self, text: str) -> None:
        if self.sent[-1] != "event":
            self.sent.append("event")

    def on_done(self) -> None:
        self.sent.append("done")


def statuses() -> list[str]:
    """How turns ended, as their response hooks saw it."""
    return [response.status.value for name, response in SEEN if name == "on_chat_response"]


async def settled(task: "asyncio.Task[SavedTurn]") -> SavedTurn:
    async with asyncio.timeout(30):
        return await task


async def until(condition: Any) -> None:
    """Wait for what must come."""
    async with asyncio.timeout(20):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


def asked() -> list[list[str]]:
    """For each user's message that the last turn's model saw: its texts, without the line about when it was sent."""
    context = [value for name, value in SEEN if name == "before_turn"][-1]
    users = [message for message in context.messages if isinstance(message, UserMessage)]
    texts = [[part.text for part in message.content if isinstance(part, TextContent)] for message in users]
    return [[text for text in each if not NOTE.fullmatch(text)] for each in texts]
