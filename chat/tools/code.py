"""Tools that run what a model writes: code, a shell over a workspace, programs of the machine.

`Think.code_tool` offers the first over all tools of a turn, and `Think.workspace_tools` brings the shell.
"""

from tools_app.code_tool.python import create_python_tool
from tools_app.code_tool.tool import create_execute_tool
from tools_app.processes.tool import create_process_tool
from tools_app.sandbox.contract import Limits, Sandbox
from tools_app.shell.tool import create_bash_tool

__all__ = ["Limits", "Sandbox", "create_bash_tool", "create_execute_tool", "create_process_tool", "create_python_tool"]
