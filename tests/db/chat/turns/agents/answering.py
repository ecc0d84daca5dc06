"""Agents whose tools another user answers, and what tests do to answer them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from chat.models import Turn
from chat.think import Allow, Block, Think, Tool, ToolCallContext, ToolContext, client_tool, tool
from chat.turns.admission.continuation import Replied, reply_to_call
from chat.turns.admission.tool_answers import Reply
from fibers import context as contexts
from fibers.context import FiberContext
from fibers.testing import die, run_until_idle
from sessions_app.core.messages.shapes import Part
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN, add
from tests.db.chat.turns.conftest import MakeRoom, Room, text_of
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.services import Actor
from tools_app.models import ApprovalEvent, ToolCallRecord


@tool(title="Payment", needs_approval=True, approval_text="Pay {amount} EUR?", editable=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    CALLS.append((amount, 0))
    return f"paid {amount}"


async def _above_ten(arguments: JSONObject, context: ToolContext) -> bool:
    SEEN.append(("asked", (arguments, context.user_id)))
    if arguments["amount"] == 13:
        raise RuntimeError("cannot decide")
    return bool(arguments["amount"] > 10)


async def _words(arguments: JSONObject) -> str:
    if arguments["amount"] == 14:
        raise RuntimeError("no words")
    return f"Spend\n{arguments['amount']}?"


@tool(needs_approval=_above_ten, approval_text=_words)
async def spend(amount: int) -> str:
    """Spend an amount; much of it only with consent."""
    CALLS.append((amount, 1))
    return f"spent {amount}"


GATE: dict[str, asyncio.Event] = {}
"""What `linger` waits for: set by the test."""


@tool
async def linger() -> str:
    """Run until the test has done what it wanted."""
    await GATE["open"].wait()
    return "lingered"


class Banker(Think):
    """Has tools of every kind: its own, a browser's, and ones that people approve."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [add, pay, spend, linger, client_tool("where", "Ask the browser where it is.")]

    def before_tool_call(self, context: ToolCallContext) -> Allow | Block | None:
        SEEN.append(("before_tool_call", context.call_id))
        return Block(reason="the vault is shut") if context.input.get("amount") == 99 else None

    def after_tool_call(self, outcome: Any) -> None:
        SEEN.append(("after_tool_call", outcome))

    def before_turn(self, context: Any) -> None:
        SEEN.append(("before_turn", context))

    def on_chat_response(self, response: Any) -> None:
        SEEN.append(("on_chat_response", response))


class Teller(Think):
    """Asks before it pays, and looks at what was paid only then."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [pay]

    def after_tool_call(self, outcome: Any) -> None:
        SEEN.append(("after_tool_call", outcome))


@dataclass
class Desk:
    """Where calls of a room are answered."""

    room: Room
    via: str = "socket"

    async def reply(self, call_id: str, *, runs: bool = True, **values: Any) -> Replied:
        actor = Actor(user_id=self.room.key.owner_id, via=self.via)
        tools = values.pop("client_tools", None)
        reply = Reply(call_id=call_id, **values)
        replied = await db(partial(reply_to_call, self.room.key, reply, actor, client_tools=tools))
        if runs:
            await run_until_idle(skip_delays=True)
        return replied

    async def part(self, call_id: str) -> Part:
        for message in await self.room.transcript():
            for part in message["parts"]:
                if part.get("toolCallId") == call_id:
                    return part
        raise AssertionError(f"no call {call_id}")

    async def calls(self) -> list[str]:
        return [p["toolCallId"] for m in await self.room.transcript() for p in m["parts"] if "toolCallId" in p]

    async def row(self, call_id: str) -> ToolCallRecord:
        return await db(lambda: ToolCallRecord.objects.get(call_id=call_id))

    async def events(self, call_id: str) -> list[tuple[str, str, str]]:
        rows = await db(lambda: list(ApprovalEvent.objects.filter(call__call_id=call_id)))
        return [(row.kind, row.via, row.reason) for row in rows]


@contextmanager
def on_record(prefix: str, *, dies: bool = False) -> Iterator[asyncio.Event]:
    """Tell when a step whose key begins so was settled; with `dies` the worker does so at the first one."""
    seen = asyncio.Event()

    def probe(context: FiberContext, key: str) -> None:
        if key.startswith(prefix) and not seen.is_set():
            seen.set()
            if dies:
                die(context)

    contexts.recorded_probes.append(probe)
    try:
        yield seen
    finally:
        contexts.recorded_probes.remove(probe)


async def turns_of(room: Room) -> list[Turn]:
    rows = Turn.objects.select_related("fiber").filter(instance__name=room.key.name).order_by("position")
    return await db(lambda: list(rows))


async def last_text(room: Room) -> str:
    return text_of((await room.transcript())[-1])


@pytest.fixture
def desk(make_room: MakeRoom) -> Desk:
    return Desk(make_room("banker"))
