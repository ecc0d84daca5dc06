"""Agents whose worker is killed while they work: on files, and in code. The first time round they wait for that."""

import asyncio
import os
from typing import Any, Final

from django.core.cache import cache

from chat.think import Think, Tool, ToolContext, ToolOutcome, tool
from tools_app.code_tool.tool import create_execute_tool, shared_sandbox
from tools_app.core.files.workspace import Put
from tools_app.sandbox.deno import DenoSandbox

FOREVER: Final = 3600.0
PAIR: Final = ("/one", "/other")


async def hold(mark: str, value: Any = True) -> None:
    """Leave a mark and wait to be killed, the first time; afterwards do nothing."""
    if await asyncio.to_thread(cache.add, f"held.{mark}", value, timeout=FOREVER):
        await asyncio.sleep(FOREVER)  # until it is killed


class Scribe(Think):
    """Works on files. What it edits is done, and not recorded, when its worker is killed."""

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give one that never stops writing two equal files, while it runs for the first time."""
        workspace = self.workspace

        @tool
        async def churn(context: ToolContext) -> str:
            """Write both files at once, again and again."""
            number = 0
            while context.attempt == 1:
                number += 1
                content = f"{number}\n".encode() * 2_000
                await workspace.apply([Put(path=path, content=content) for path in PAIR])
                await asyncio.to_thread(cache.set, f"churned.{self.key.name}", number, timeout=FOREVER)
            return "churned"

        return [churn]

    async def after_tool_call(self, outcome: ToolOutcome) -> None:
        """Wait between an edit and its record."""
        if outcome.tool_name == "edit":
            await hold(self.key.name)


@tool
async def count(context: ToolContext) -> int:
    """Count how often this ran in a turn."""
    key = f"counted.{context.instance_name}"
    await asyncio.to_thread(cache.add, key, 0, timeout=FOREVER)
    return int(await asyncio.to_thread(cache.incr, key))


@tool
async def linger_on(context: ToolContext) -> str:
    """Say who works here, and wait to be killed."""
    sandbox = shared_sandbox()
    assert isinstance(sandbox, DenoSandbox)
    await hold(context.instance_name, {"worker": os.getpid(), "guests": sandbox.running})
    return "back"


class Extended(Think):
    """Has what is loaded for a conversation, and nothing of its own."""

    workspace_tools = False

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"


class Coder(Think):
    """Has nothing but code."""

    workspace_tools = False

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give the tool that runs code, which has two functions and the files."""
        return [create_execute_tool([count, linger_on], workspace=self.workspace)]
