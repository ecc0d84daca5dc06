"""An agent whose tool is run by a process that only has this tool (`tests/acceptance/lab`)."""

from chat.think import Think, Tool, tool
from chat.tools.durable import make_durable_tool


@tool
def measure(paper: str) -> str:
    """Measure."""
    raise AssertionError("the desk has no instruments")


class Surveyor(Think):
    """Has the lab measure."""

    workspace_tools = False

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [make_durable_tool(measure, executor="lab")]
