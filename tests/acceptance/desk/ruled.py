"""An agent whose commands ask, until a rule lets them run, and that asks with choices."""

from chat.think import Think, Tool, tool
from chat.tools.questions import ask_user
from tools_app.core.permissions.subjects import command_subject


@tool(
    title="Run a command",
    needs_approval=True,
    approval_text="Run {command}?",
    permission="bash",
    patterns=lambda given, _context: [command_subject(given["command"])],
)
def terminal(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


class Porter(Think):
    """Runs commands, after asking."""

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"

    def get_tools(self) -> list[Tool]:
        """Give the one that rules are about, and the questions."""
        return [terminal, ask_user]
