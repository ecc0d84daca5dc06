"""Questions of agents to people, with choices: `ask_user` for `get_tools()`, or one under another name."""

from tools_app.question_tool import ask_user, create_question_tool

__all__ = ["ask_user", "create_question_tool"]
