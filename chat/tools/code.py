"""Tools that run code which a model writes. `Think.code_tool` offers the first over all tools of a turn."""

from tools_app.execute.python import create_python_tool
from tools_app.execute.tool import create_execute_tool
from tools_app.sandbox.contract import Limits, Sandbox

__all__ = ["Limits", "Sandbox", "create_execute_tool", "create_python_tool"]
