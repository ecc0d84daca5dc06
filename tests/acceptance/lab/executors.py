"""The function of the lab."""

from pathlib import Path

from chat.think import ToolContext
from chat.tools.durable import create_tool_execution_effect
from tests.acceptance.desk.surveying import measure
from tests.acceptance.product import wait_for


def measure_here(paper: str, context: ToolContext) -> str:
    """Say in the paper that it began, wait for the word to go on, and have the effect: once for each key."""
    with Path(paper).open("a", encoding="utf-8") as file:
        file.write(f"{context.idempotency_key} {context.attempt}\n")
    wait_for(Path(f"{paper}.go").exists, what="the word to go on")
    Path(f"{paper}.{context.idempotency_key.replace(':', '.')}").touch()  # the system outside, which knows keys
    return "12 metres"


create_tool_execution_effect([measure], {"measure": measure_here}, executor="lab")
