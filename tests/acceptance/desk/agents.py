"""An agent for acceptance tests, served through `THINK_APPS`: its calls are answered by browsers and by people."""

import asyncio
from pathlib import Path

from chat.think import Think, Tool, ToolContext, client_tool, tool
from thinkproject.kernel.jsonvalue import JSONObject


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


async def _is_much(arguments: JSONObject, _context: ToolContext) -> bool:
    return bool(arguments["amount"] > 10)


@tool(needs_approval=_is_much)
async def spend(amount: int) -> str:
    """Spend an amount; much of it only with consent."""
    await asyncio.sleep(0.2)
    return f"spent {amount}"


@tool
async def linger(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"lingered {seconds:g}"


@tool(needs_approval=True)
def sign(path: str, context: ToolContext) -> str:
    """Write a line to a file: how often this ran is seen there."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{context.idempotency_key}\n")
    return "signed"


class Desk(Think):
    """Has tools of every kind."""

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give one of ours, some that people approve, and one that a browser runs."""
        return [linger, pay, spend, sign, client_tool("locate", "Ask the browser where it is.")]


class NewestFirst(Desk):
    """Answers only the newest of the messages that wait."""

    message_concurrency = "latest"


class OneAtATime(Desk):
    """Takes no message while it answers."""

    message_concurrency = "drop"


class Together(Desk):
    """Answers the messages that wait as one."""

    message_concurrency = "merge"


class Patient(Desk):
    """Answers the newest message once it has been quiet for a moment."""

    message_concurrency = {"strategy": "debounce", "debounceMs": 400}


class Resigned(Desk):
    """Does not go on with an answer whose worker died."""

    chat_recovery = False
