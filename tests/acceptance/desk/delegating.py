"""An agent that has another one work for it, and that one, which says how far it is and asks people."""

import asyncio

from chat.think import Think, Tool, ToolContext, tool


@tool(title="Payment", needs_approval=True, approval_text="Pay {amount}?")
def pay_for(amount: int) -> str:
    """Pay for something."""
    return f"paid {amount}"


class Finder(Think):
    """Looks things up. Its task is what the scripted model is to do."""

    title = "Finder"

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Look for a while, and pay."""

        @tool
        async def look(seconds: float, context: ToolContext) -> str:
            """Look, and say how far it is."""
            self.milestone("Sources found", {"count": 3})
            self.report_progress(0.4, "Reading the second of five sources")
            await asyncio.sleep(seconds)  # a tool that takes as long as it is asked to
            self.report_progress(1.0, "Read all of them")
            return "seen"

        return [look, pay_for]


class Helper(Think):
    """Works for others only."""

    title = "Helper of others"
    listed = False

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"


class Editor(Think):
    """Has finders work for it."""

    title = "Editor"
    sub_agents = (Finder,)

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Have a finder look: wait for it, or not."""
        waiting = self.agent_tool(Finder, name="find", display_name="Finder of things", icon="search")
        later = self.agent_tool(Finder, name="find_later", display_name="Finder in the background", detached=True)
        return [waiting, later]
