"""A shop whose tools and hooks have effects: some of them safe to run again, some not."""

from typing import Any

from chat.think import (
    ChatResponse,
    Think,
    Tool,
    ToolContext,
    TurnContext,
    action,
    client_tool,
    tool,
)
from fibers.context import current_fiber

DONE: list[str] = []
"""What the world outside has seen."""
KEYED: dict[str, str] = {}
"""The same of a system that knows idempotency keys."""


def effects() -> list[str]:
    return [*DONE, *KEYED.values()]


def empty() -> None:
    DONE.clear()
    KEYED.clear()


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def charge(amount: int) -> str:
    """Charge without a key: wrong."""
    DONE.append(f"charged {amount}")
    return f"charged {amount}"


@tool
def charge_keyed(amount: int, context: ToolContext) -> str:
    """Charge with a key."""
    KEYED.setdefault(context.idempotency_key, f"charged {amount}")
    return f"charged {amount}"


@tool(reruns=False)
def charge_once(amount: int) -> str:
    """Charge, and never again."""
    DONE.append(f"charged {amount}")
    return f"charged {amount}"


@action
def refund(amount: int) -> str:
    """Refund, as an action."""
    DONE.append(f"refunded {amount}")
    return f"refunded {amount}"


@action(pause=True, summary="Refund {amount}?")
def refund_asked(amount: int) -> str:
    """Refund once a person has said yes."""
    DONE.append(f"refunded {amount}")
    return f"refunded {amount}"


@tool
async def ring(name: str, context: ToolContext) -> Any:
    """Wait until the door is answered."""
    return await context.wait("door", label="the door", seconds=3600)


class Shop(Think):
    """Takes care."""

    workspace_tools = False

    def get_model(self) -> Any:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [add, charge, charge_keyed, charge_once, refund, refund_asked, ring, client_tool("where", "Where?")]


class TwiceShop(Shop):
    """Writes into the conversation in a hook that runs again in each attempt."""

    async def before_turn(self, context: TurnContext) -> None:
        await self.add_messages({"role": "user", "parts": [{"type": "text", "text": "remember"}]})


class NoisyShop(Shop):
    """Reports each answer to the world outside, from a hook that runs in a fiber of its own, at least once."""

    async def on_chat_response(self, response: ChatResponse) -> None:
        DONE.append(f"answered {response.status}")


class FickleShop(Shop):
    """Says which attempt answers."""

    def get_system_prompt(self) -> str:
        fiber = current_fiber()
        return f"attempt {fiber.attempt if fiber else 0}"
