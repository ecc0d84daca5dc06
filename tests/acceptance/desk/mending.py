"""An agent that works on a repository."""

from chat.think import Think, Tool
from chat.tools.code import create_process_tool


class RepoCoder(Think):
    """Has the file tools and real programs, and many steps."""

    max_steps = 80

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give it the programs of the machine."""
        return [create_process_tool(self.workspace)]
