"""A to-do list that the model keeps and people see: `todo_tools` for `get_tools()`."""

from tools_app.todo_tools import todo_tools

__all__ = ["todo_tools"]
