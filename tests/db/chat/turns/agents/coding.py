"""Agents that have code over their tools, and what happened to these. Importing this module serves them."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

from chat.core.model.language_model import ModelEvent, ModelRequest, ToolSpec
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.think import (
    ActionContext,
    Media,
    Think,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    ToolOutput,
    TurnConfig,
    TurnContext,
    action,
    client_tool,
    tool,
    with_approval,
)
from fibers.context import current_fiber
from fibers.testing import die, run_until_idle
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import MakeRoom, Room
from tests.pictures import PNG
from tools_app.code_tool.tool import create_execute_tool, shared_sandbox
from tools_app.sandbox.contract import Limits

NOTED: list[str] = []
"""What tools and hooks did, in order."""

GATE: dict[str, asyncio.Event] = {}
"""What `linger` waits for: set by the test."""


class Says:
    """What the hooks of `Coder` say; set by the test."""

    decision: ClassVar[dict[str, Any]] = {}  # of `before_tool_call`, by the name of the tool
    dies: ClassVar[str] = ""  # where the worker is lost, once
    active: ClassVar[Sequence[str] | None] = None
    may_act: ClassVar[Any] = None

    @classmethod
    def reset(cls) -> None:
        cls.decision, cls.dies, cls.active, cls.may_act = {}, "", None, None
        NOTED.clear()
        GATE.clear()


def _crash(where: str) -> None:
    fiber = current_fiber()
    if Says.dies == where and fiber is not None:
        Says.dies = ""
        die(fiber)


@tool
async def look(context: ToolContext) -> str:
    """Look something up."""
    NOTED.append(f"look {context.call_id}")
    return "found"


@tool(title="Letter", needs_approval=True, approval_text="Send it to {to}?", editable=("text",))
async def send(context: ToolContext, to: str, text: str = "") -> str:
    """Send a letter."""
    NOTED.append(f"send {to} {text} {context.idempotency_key.partition(':')[2]}".replace("  ", " "))
    _crash("inside")
    return f"{text} went to {to}"


@tool(needs_approval=lambda arguments, _context: arguments["amount"] > 10, reruns=False)
async def pay(amount: int) -> str:
    """Pay; much of it only with consent."""
    NOTED.append(f"pay {amount}")
    _crash("inside")
    return f"paid {amount}"


@tool
async def linger() -> str:
    """Run until the test has done what it wanted."""
    GATE["reached"].set()
    await GATE["open"].wait()
    return "lingered"


@tool(needs_approval=True, reruns=False)
async def brood() -> str:
    """Run, once it may, until the test has done what it wanted."""
    NOTED.append("brood")
    GATE["reached"].set()
    await GATE["open"].wait()
    return "brooded"


@tool
async def plot(count: int = 1) -> ToolOutput:
    """Draw."""
    NOTED.append(f"plot {count}")
    return ToolOutput(
        value=f"{count} drawn", media=[Media(data=PNG + bytes([n]), name=f"{n}.png") for n in range(count)]
    )


@action(permissions=("auth.change_user",), approval=True)
def rename(name: str) -> str:
    """Rename a person."""
    NOTED.append(f"rename {name}")
    return f"renamed {name}"


@tool
async def remark(context: ToolContext) -> str:
    """Add something to the reply."""
    context.attach_reply({"type": "data-remark", "id": "r", "data": {"n": 1}})
    return "remarked"


class Coder(Think):
    """Has code over all its tools."""

    workspace_tools = False
    code_tool: ClassVar[bool | Sequence[str]] = True

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [look, send, pay, linger, plot, rename, remark, client_tool("where", "Ask the browser.")]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(active_tools=Says.active)

    async def before_tool_call(self, context: ToolCallContext) -> Any:
        NOTED.append(f"before {context.call_id}")
        if context.tool_name != "execute":
            _crash("before")
        return Says.decision.get(context.tool_name)

    async def after_tool_call(self, outcome: ToolOutcome) -> None:
        NOTED.append(f"after {outcome.call_id}")
        if outcome.tool_name != "execute":
            _crash("after")

    def authorize_action(self, context: ActionContext) -> Any:
        NOTED.append(f"authorize {context.call_id} {context.approved}")
        return Says.may_act


class FileCoder(Coder):
    """Has files as well, and code that may use some of the tools."""

    workspace_tools = True
    code_tool = ("read", "look", "s*", "!send")


class HastyCoder(Coder):
    """Has code that may take a second."""

    code_tool = False

    def get_tools(self) -> list[Tool]:
        return [create_execute_tool([send], limits=Limits(seconds=1.0))]


class GuardedCoder(Coder):
    """Has code that a person approves before it runs, and its call after that; questions have no end."""

    code_tool = False
    approval_seconds = 0

    def get_tools(self) -> list[Tool]:
        return [with_approval(create_execute_tool([look, send])), brood]


@tool
async def execute(code: str) -> str:
    """Run code of another kind."""
    return f"my own code: {code}"


class OwnCoder(Coder):
    """Has a tool of its own in the place of ours."""

    def get_tools(self) -> list[Tool]:
        return [execute, look]


def script(code: str) -> str:
    """What the model does: it runs this code and says what came of it."""
    return f"call tool execute {json.dumps({'code': code})} id=one\nsay: It says {{result}}."


class Listening(ScriptedModel):
    """The scripted model, which keeps the tools that it was last offered."""

    offered: tuple[ToolSpec, ...] = ()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.offered = request.tools
        async for event in super().stream(request):
            yield event


class Code(Desk):
    """A room whose code asks people."""

    @property
    def offered(self) -> dict[str, str]:
        """The tools that the model was last offered, with their descriptions."""
        assert isinstance(self.room.model, Listening)
        return {tool.name: tool.description for tool in self.room.model.offered}

    async def run(self, code: str) -> Turn:
        """Have the model run code."""
        return await self.room.say(script(code))

    async def goes_on(self, turn: Turn) -> Turn:
        await run_until_idle(skip_delays=True)
        return await self.room.turn(turn.pk)

    async def done(self) -> list[str]:
        """What was done, without what hooks saw."""
        return [note for note in NOTED if note.partition(" ")[0] not in {"before", "after", "authorize"}]


def listening(room: Room) -> Code:
    """The same room with a model that listens."""
    room.model = MODELS["current"] = Listening()
    return Code(room)


@asynccontextmanager
async def sandbox_closed() -> AsyncIterator[None]:
    """No process of the shared sandbox is left behind."""
    Says.reset()
    try:
        yield
    finally:
        await shared_sandbox().close()


@pytest.fixture(autouse=True)
async def sandbox_closes() -> AsyncIterator[None]:
    async with sandbox_closed():
        yield


@pytest.fixture
def code(make_room: MakeRoom) -> Code:
    return Code(make_room("coder"))
