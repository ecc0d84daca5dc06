"""An agent whose tools have effects, and what happened in its shop."""

import base64
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from chat.think import (
    ActionContext,
    Allow,
    AuthorizationContext,
    Think,
    Tool,
    ToolCallContext,
    ToolContext,
    action,
    tool,
)
from fibers.context import current_fiber
from fibers.testing import die
from tests.db.chat.turns.agents.everyday import MODELS
from tools_app.core.tool_output import Media

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
EFFECTS: list[tuple[Any, ...]] = []
"""What the world outside would have seen."""


class Rules:
    """What the hooks of `Clerk` say; set by the test."""

    turn: ClassVar[Any] = None
    action: ClassVar[Any] = None
    rewrites: ClassVar[Any] = None
    dies: ClassVar[str] = ""
    seen: ClassVar[list[Any]] = []

    @classmethod
    def reset(cls) -> None:
        cls.turn, cls.action, cls.rewrites, cls.dies = None, None, None, ""
        cls.seen.clear()
        EFFECTS.clear()


def _crash(where: str) -> None:
    """Lose the worker here, once, where the test wants it."""
    fiber = current_fiber()
    if Rules.dies == where and fiber is not None:
        Rules.dies = ""
        die(fiber)


@action(permissions=("auth.change_user",))
def rename(name: str) -> str:
    """Rename a person."""
    EFFECTS.append(("rename", name))
    return f"renamed {name}"


@action(
    key="order",
    permissions=("auth.change_user",),
    pause=True,
    summary="Refund {amount} for {order}?",
    risk="high",
    title="Refund",
    editable=("amount",),
)
def refund(order: str, amount: int, context: ToolContext) -> str:
    """Refund an order."""
    EFFECTS.append(("refund", order, amount, context.idempotency_key.partition(":")[2]))
    return f"refunded {order}"


@action
async def send(to: str, context: ToolContext) -> str:
    """Send a message, whose worker may die before and after it."""
    _crash("before")
    EFFECTS.append(("send", to, context.attempt))
    context.attach_reply({"type": "data-card", "data": {"to": to}})
    _crash("after")
    return f"sent to {to}"


@action(key="to")
async def post(to: str, context: ToolContext) -> str:
    """Post a letter under a key."""
    EFFECTS.append(("post", to, context.idempotency_key.rpartition(":")[2]))
    _crash("after")
    return f"posted to {to}"


@tool
async def chart(count: int, context: ToolContext) -> str:
    """Draw, and attach what was drawn."""
    for number in range(count):
        context.attach_reply(Media(data=PNG + bytes([number]), name=f"chart-{number}.png"))
    context.attach_reply({"type": "source-url", "url": "https://example.org/data", "title": "Data"})
    context.attach_reply({"type": "data-table", "data": [[1, 2]]})
    return "drawn"


@action(pause=60, permissions=("auth.change_user",))
def insure(order: str, context: ToolContext) -> str:
    """Insure an order, and attach the policy."""
    context.attach_reply({"type": "data-policy", "data": order})
    return f"insured {order}"


@tool
def show(urls: list[str], context: ToolContext) -> str:
    """Attach files by their URLs."""
    for url in urls:
        context.attach_reply({"type": "file", "url": url, "filename": "shown.txt"})
    return "shown"


@tool
def cards(count: int, context: ToolContext) -> str:
    """Attach many cards, from a thread."""
    for number in range(count):
        context.attach_reply({"type": "data-card", "data": number})
    return "dealt"


@tool
def wrong(part: dict[str, Any], context: ToolContext) -> str:
    """Attach whatever it is given, and fail after it."""
    context.attach_reply(part)
    raise RuntimeError("failed after all")


class Clerk(Think):
    """Has actions, and asks Django alone what they may do."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [rename, refund, send, post, insure, chart, show, cards, wrong]

    def after_tool_call(self, outcome: Any) -> None:
        _crash("unrecorded")


class Warden(Clerk):
    """Decides itself what its actions may do, and looks at their input."""

    def authorize_turn(self, context: AuthorizationContext) -> Any:
        Rules.seen.append(context)
        return _said(Rules.turn)

    async def authorize_action(self, context: ActionContext) -> Any:
        Rules.seen.append(context)
        return _said(Rules.action)

    def before_tool_call(self, context: ToolCallContext) -> Allow | None:
        return None if Rules.rewrites is None else Allow(input=Rules.rewrites)


def _said(rule: Any) -> Any:
    if isinstance(rule, Exception):
        raise rule
    return rule


@pytest.fixture(autouse=True)
def fresh_rules() -> Iterator[None]:
    Rules.reset()
    yield
    Rules.reset()
