"""Agents that work on code, to be served or subclassed: import this module in a module of agents of your own.

    from chat.coding.agents import Build, Plan

`Build` and `Plan` are for people, `General` and `Explore` work for them. How to: `docs/howto/coding-agent.md`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from chat.agent.think import Think
from chat.agent.values.runs import Detached
from chat.core.commands import Command
from chat.tools.code import create_process_tool
from chat.tools.questions import ask_user
from chat.tools.todo import todo_tools
from chat.user_code.workspace import workspace_of
from tools_app.core.permissions.rules import Permission
from tools_app.core.tool import Tool

WORK_TEXT = """\
You work on the code in the workspace. Read before you change anything, keep to the style of what is there, and change
only what the task needs. Look at what failed before you try again. Answer briefly, and name files by their paths.\
"""
BUILD_TEXT = """\
Keep a to-do list for work of several steps. Run the tests where there are any, and say so if you could not. Leave
searches through much code to the explorer.\
"""
PLAN_TEXT = """\
You plan, and change nothing. Find out what the task touches, ask where the answer decides the plan, and end with the
steps in order, each with its files and with the way to see that it is done.\
"""
EXPLORE_TEXT = """\
You find things in the code for another agent, and change nothing. Answer with paths, line numbers and the lines that
matter, and with what you looked for and did not find.\
"""
GENERAL_TEXT = "You work for another agent, which reads only your last answer: say what you did and what is left."


class CodingAgent(Think, abstract=True):
    """The base of these agents: the files of the workspace, its instructions, and a model of the class's own."""

    model: ClassVar[Any] = "default"
    """The model of the class, as `get_model` would name it."""

    role_text: ClassVar[str] = ""
    """The part of the system prompt for this agent, below the part for all of them."""

    icon = "code"
    max_steps = 50
    context_policy = "coding"
    instruction_files = ("AGENTS.md", "CLAUDE.md")
    workspace_in_prompt = True

    def get_model(self) -> Any:
        """Choose the model of the class."""
        return self.model

    def get_system_prompt(self) -> str:
        """Give the text of all these agents, and that of this one."""
        return f"{WORK_TEXT}\n{self.role_text}".strip()


class Explore(CodingAgent):
    """Finds things in the code."""

    title = _("Explore")
    description = _("Searches the code and reports what is where. Changes nothing.")
    listed = False
    role_text = EXPLORE_TEXT
    enabled_tools = ("read", "list", "find", "grep")
    permissions = (Permission.deny("@changes"),)


class General(CodingAgent):
    """Does a task of its own for another agent."""

    title = _("General")
    description = _("Does a task of several steps on its own and reports what came of it.")
    listed = False
    role_text = GENERAL_TEXT

    async def get_tools(self) -> Sequence[Tool]:
        """Offer programs. No to-do list and no further agents: the task is whole."""
        return [create_process_tool(await workspace_of(self))]


class Build(CodingAgent):
    """Writes code."""

    title = _("Build")
    description = _("Reads, writes and runs code, and has others search it or work beside it.")
    role_text = BUILD_TEXT
    user_shell = "bash"
    commands = (
        Command(
            "init",
            "Look through the workspace and write /AGENTS.md, or mend the one there is: how to build and test, the "
            "layout, the conventions that are not obvious. At most 60 lines. $ARGUMENTS",
            "Write the instructions for agents",
        ),
        Command("explore", "$ARGUMENTS", "Have the code searched", agent="explore"),
    )

    async def get_tools(self) -> Sequence[Tool]:
        """Offer programs, a to-do list, questions, and agents: at once, and in the background."""
        return [
            create_process_tool(await workspace_of(self)),
            *todo_tools,
            ask_user,
            self.agent_tool(Explore, workspace="shared", read_only=True),
            self.agent_tool(General, workspace="shared"),
            self.agent_tool(
                General,
                name="general_in_background",
                description="Begin such a task and go on meanwhile; a message reports when it has ended.",
                workspace="shared",
                detached=Detached(wakes_parent=True),
            ),
        ]


class Plan(CodingAgent):
    """Plans work on code."""

    title = _("Plan")
    description = _("Looks at the code and plans a change, without making it.")
    role_text = PLAN_TEXT
    permissions = (Permission.deny("@changes"),)

    def get_tools(self) -> Sequence[Tool]:
        """Offer a to-do list, questions and the explorer."""
        return [*todo_tools, ask_user, self.agent_tool(Explore, workspace="shared", read_only=True)]


__all__ = ["Build", "Explore", "General", "Plan"]
