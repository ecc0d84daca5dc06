"""A model whose every word is said once in the world, and only when it is let.

What it does is in the last thing it was sent: `talk`, `where` and so on (`KINDS`). It keeps what it said, call by call,
so that a lost or doubled word is seen.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextContent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UserMessage,
)
from chat.errors import ModelRejected
from chat.think import Think, Tool, client_tool, tool
from thinkproject.kernel.jsonvalue import JSONObject, dump

KINDS: dict[str, tuple[str, ...]] = {
    "talk": (),
    "long": (),
    "fail": (),
    "refuse": (),
    "silent": (),
    "add": ("add",),
    "where": ("where",),
    "pay": ("pay",),
    "twice": ("where", "where"),
    "batch": ("add", "where", "pay"),
    "asks": ("pay", "pay"),
}
"""What people ask for, and the tools that are called for it before anything is said."""

ARGUMENTS: dict[str, JSONObject] = {"add": {"a": 1, "b": 2}, "where": {}, "pay": {"amount": 5}}


@dataclass
class Said:
    """One call of the model."""

    words: list[str] = field(default_factory=list)
    is_finished: bool = False


class Speaker:
    """Speaks as far as `permits` go."""

    name = "fuzz/speaker"
    accepts_images = False
    accepts_documents = False

    def __init__(self) -> None:
        self.said: list[Said] = []
        self._permits = 0
        self._is_free = False
        self._changed = asyncio.Event()
        self._numbers = count()
        self._calls = count()

    def let(self, words: int) -> None:
        """Let it say so many words more."""
        self._permits = words
        self._changed.set()

    def free(self, *, is_free: bool) -> None:
        """Let it say what it likes, or stop it."""
        self._is_free = is_free
        self._permits = 0
        self._changed.set()

    def describe(self, request: ModelRequest) -> JSONObject:
        """Nothing that matters."""
        return {"messages": []}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call or talk. Errors: `ModelRejected` where it was asked to fail."""
        mine = Said()
        self.said.append(mine)
        kind = _kind(request)
        await self._wait()
        if kind == "refuse":
            raise ModelRejected("It refuses.")
        if KINDS.get(kind):
            for name in KINDS[kind]:
                for event in self._call(name):
                    yield event
                    await asyncio.sleep(0)
            yield Finish(reason=FinishReason.TOOL_CALLS)
            return
        for number in range({"long": 8, "silent": 0}.get(kind, 3)):
            if kind == "fail" and number == 2:
                raise ModelRejected("It fails.")
            await self._wait()
            word = f"w{next(self._numbers)} "
            mine.words.append(word)
            yield TextDelta(text=word)
        mine.is_finished = True
        yield Finish(reason=FinishReason.STOP)

    def _call(self, name: str) -> list[ModelEvent]:
        call_id, arguments = f"call-{next(self._calls)}", dump(ARGUMENTS[name])
        return [
            ToolCallStart(call_id=call_id, tool_name=name),
            ToolCallDelta(call_id=call_id, text=arguments),
            ToolCallEnd(call_id=call_id, tool_name=name, arguments=arguments),
        ]

    async def _wait(self) -> None:
        while not self._is_free and self._permits <= 0:
            self._changed.clear()
            await self._changed.wait()
        self._permits -= 1


def _kind(request: ModelRequest) -> str:
    last = request.messages[-1]
    if not isinstance(last, UserMessage):
        return "talk"  # results have come
    text = "".join(content.text for content in last.content if isinstance(content, TextContent))
    found = re.match(r"\w+", text)
    return found[0] if found else "talk"


SPEAKERS: dict[str, Speaker] = {}
"""The model of the present example."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


class Fuzzed(Think):
    """Has a tool of every kind."""

    def get_model(self) -> Any:
        """The example's."""
        return SPEAKERS["current"]

    def get_tools(self) -> list[Tool]:
        """One of each kind."""
        return [add, pay, client_tool("where", "Ask the browser where it is.")]
