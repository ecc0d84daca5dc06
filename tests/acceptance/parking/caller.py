"""A program that has an agent answer with its help: `python -m tests.acceptance.parking.caller ROOM PAPER TIMEOUT`.

It asks, and runs the calls of its tool itself: each writes a line to PAPER, and waits until there is another file
beside it. Its standard output is the answer.
"""

import asyncio
import os
import sys
from pathlib import Path

import django

from tests.acceptance.product import wait_for


async def ask(room: str, paper: Path, seconds: float) -> str:
    """Ask for a turn, and give its answer."""
    from chat.think import AgentHandle, InstanceKey, tool
    from chat.turns.tools import caller_tools

    caller_tools.CALLER_SECONDS = 0.5

    @tool(timeout_seconds=seconds)
    def note(text: str) -> str:
        """Write a line to the paper."""
        with paper.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        wait_for(Path(f"{paper}.go").exists, what="the word to go on")
        return f"noted by {os.getpid()}"

    handle = AgentHandle(InstanceKey(owner_id=None, agent="waiter", name=room))
    result = await handle.chat('call tool note {"text": "here"} id=one\nsay: It is {result}.', tools=[note])
    assert result.message is not None
    return "".join(part["text"] for part in result.message["parts"] if part["type"] == "text")


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(f"{asyncio.run(ask(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])))}\n")
